// Package pytorchlearner is not Go: this folder is a learner in PyTorch, a plugin in Python for rlhost's APPO batches.
//
//	[plugin.torch]
//	path = "examples/plugins/pytorch-learner/learner.py"
//	interpreter = ["python3"]
//
// network.py and ppo.py are what it computes, learner.py how it speaks with the host. The test here writes what the host's reference
// arithmetic makes of a dataset, and test_learner.py holds PyTorch to it.
package pytorchlearner

// Package pytorchlearner is not Go: this folder is a learner in PyTorch, a plugin in Python for rlhost's APPO batches.
//
//	[plugin.torch]
//	path = "examples/plugins/pytorch-learner/learner.py"
//	interpreter = ["python3"]
//
// network.py and ppo.py compute, learner.py speaks with the host. The test here writes the results of the host's reference
// arithmetic for a dataset, and test_learner.py compares PyTorch's with them.
package pytorchlearner

// Package policy describes policies independently of what computes them: the network and its parameters, the
// weights that a learner publishes, the PPO and V-trace arithmetic in plain Go, and the Backend interface that
// gpu/cpu, gpu/gorgonia and gpu/cuda implement.
//
//	net := policy.Network{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}
//	learner, err := backend.NewLearner(net, params, cfg)
//	stats, err := learner.Update(&policy.Dataset{Blocks: blocks, …}, policy.Rates{…})
//	err = learner.Params(weights.Params)
//	err = actor.Load(weights)
//	err = actor.Act(rows)
//
// The arithmetic here is the definition that backends are held to; speed is their business. Queues, blocks and
// versions in flight are plugins/inference's and plugins/learner's.
package policy

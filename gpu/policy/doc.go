// Package policy describes policies independently of what computes them: the network and its parameters, the
// weights that a learner publishes, the datasets that one learns from, and the Backend interface that gpu/cpu, gpu/cuda and
// gpu/gorgonia implement. How policies are improved is gpu/ppo's.
//
//	net := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}.Network()
//	actor, err := policy.NewActor(backend, &net, 64)
//	err = actor.Load(weights)
//	err = actor.Act(requests)
//
// The arithmetic here is the definition that backends are held to; speed is their business. Queues, blocks and
// versions in flight are plugins/inference's and plugins/learner's.
package policy

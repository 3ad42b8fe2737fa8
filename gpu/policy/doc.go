// Package policy describes policies independently of their backends: the network and its parameters, the weights that a
// learner publishes, the datasets that it learns from, and the Backend interface that gpu/cpu, gpu/cuda and gpu/gorgonia
// implement. How policies are improved is gpu/ppo's.
//
//	net := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}.Network()
//	actor, err := policy.NewActor(backend, &net, 64)
//	err = actor.Load(weights)
//	err = actor.Act(requests)
//
// The arithmetic here is the reference for backends, which care for speed. plugins/inference and plugins/learner
// handle queues, blocks and versions in flight.
package policy

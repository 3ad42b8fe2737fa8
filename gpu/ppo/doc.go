// Package ppo learns by proximal policy optimisation (Schulman et al. 2017): the targets, the loss, minibatches, the clip
// and Adam in plain Go, and the one loop of updates over an Engine, which gpu/cpu, gpu/cuda and gpu/gorgonia are.
//
//	learner, err := ppo.NewLearner(backend, &network, policy.Init(&network, seed), ppo.Defaults())
//	stats, err := learner.Update(&policy.Dataset{Blocks: blocks, …}, ppo.Rates{…})
//	err = learner.Params(weights.Params)
//
// The arithmetic here is the reference for engines, which care for speed. plugins/learner handles queues, blocks and
// versions in flight.
package ppo

// Package gorgonia computes policies with gorgonia expression graphs: the backend where a new layer or loss needs no
// derivative, and the oracle that the gradients of the fast backends are compared with.
//
//	backend := &gorgonia.Backend{Builder: residual{}, Loss: calmLogits} // New() for policy.Network as it is
//	learner, err := ppo.NewLearner(backend, &net, params, cfg)
//	stats, err := learner.Update(dataset, rates)
//	actor, err := policy.NewActor(backend, &net, 64)
//	err = actor.Act(requests)
//
// A Builder adds layers, a Loss adds terms, and gorgonia differentiates both; the example has one of each.
// Everything else is as in the other backends and comes from package ppo: targets, shuffle, advantage
// normalisation, the global-norm clip and Adam. gorgonia's own solvers are not used, because their state can be
// neither stored nor exchanged.
//
// # What it promises
//
// A row's outputs do not depend, in any bit, on the other rows, on the number of rows of the graph or on its place
// among them, and acting and learning compute them by the same operations: with the weights that acted, the ratio
// of a minibatch is exactly 1. Results repeat in every bit. All of it follows from one rule: everything is either a
// function of single elements or a product of matrices, and a product adds up every element in ascending order of
// the inner index, for all sizes and places of the tensors. A Builder that wants to keep the promise
// keeps to the rule, as the functions of this package do; of gorgonia's vectors and of its sums and means along an
// axis nothing is known.
//
// Graphs have a fixed number of rows. They are compiled on first use, which takes some milliseconds, and kept: a
// learner has at most one for Minibatch and for each half of it down to 8, an actor one for each of 8 to 1024.
// Batches are filled up with rows of weight 0.
//
// Every actor and learner has its own graphs, machines and tensors, so that several may work at the same time.
//
// # Limits
//
// It is not fast: an optimiser step of the 4-64-64 network takes 1.7 ms of one core for 64 rows and 15 ms for 1024,
// which is 15 to 50 times the cpu backend's time, and acting on 64 rows 0.5 ms; BenchmarkUpdate and BenchmarkAct
// have both side by side. Unlike other backends it allocates when it acts. The rlhost program does not link it.
package gorgonia

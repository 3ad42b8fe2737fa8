// Package gorgonia computes policies with gorgonia expression graphs: the backend where a layer or a loss of one's
// own works first, and the oracle that the gradients of the fast backends are held against.
//
//	backend := &gorgonia.Backend{Builder: residual{}, Loss: withMyTerm} // New() for policy.Network as it is
//	learner, err := backend.NewLearner(net, params, cfg)
//	stats, err := learner.Update(dataset, rates)
//	actor, err := backend.NewActor(net, 64)
//	err = actor.Act(requests)
//
// A Builder adds layers, a Loss adds terms; gorgonia differentiates both. Everything else is as in the other
// backends and comes from package policy: targets, shuffle, advantage normalisation, the global-norm clip and Adam.
// gorgonia's own solvers are not used, because their state can be neither stored nor exchanged.
//
// # What it promises
//
// A row's outputs do not depend, in any bit, on the other rows, on the number of rows of the graph or on its place
// among them, and acting and learning compute them by the same operations: with the weights that acted, the ratio
// of a minibatch is exactly 1. That holds because everything in the default graph is a matrix product whose inner
// dimension lies within a row, which gonum adds up in the order of the elements whatever the sizes are, or a
// function of single elements. A Builder must keep to that (the functions of this package do), or this promise is
// its author's.
//
// Graphs have a fixed number of rows. They are compiled on first use, which takes some milliseconds, and kept: a
// learner has at most one for Minibatch and for each half of it down to 8, an actor for 8 to 1024 rows. Batches are
// filled up with rows of weight 0.
//
// # What it is not
//
// Fast, or free of allocations: see BenchmarkUpdate and BenchmarkAct. The rlhost program does not link it.
package gorgonia

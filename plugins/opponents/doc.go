// Package opponents has the components that give policies which nobody learns the weights that they act with.
//
// Pool, kind "opponents", keeps versions of a learned policy and publishes one of them at a time, drawn anew as the
// learner publishes: the first version that it has received, and the newest ones. Frozen, kind "frozen", publishes
// what a [policy] table with version or from names, once. Both keep what they publish in their own state, so that a
// run goes on without the checkpoint or the file that it came from.
//
//	kinds := map[string]func() component.Component{"opponents": opponents.New, "frozen": opponents.NewFrozen}
//
// Neither knows who plays whom: that is the rollout's.
package opponents

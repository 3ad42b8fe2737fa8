// Package opponents has the components that publish weights for policies without a learner.
//
// Pool, kind "opponents", keeps versions of a learned policy and publishes one of them at a time, drawn again as
// the learner publishes: the first version that it has received, and the newest ones. Frozen, kind "frozen",
// publishes the weights that a [policy] table names with version or from, once. Both keep these weights in their
// own state, so that a run continues without the checkpoint or the file that they came from.
//
//	kinds := map[string]func() component.Component{"opponents": opponents.New, "frozen": opponents.NewFrozen}
//
// Neither knows who plays whom: the rollout decides.
package opponents

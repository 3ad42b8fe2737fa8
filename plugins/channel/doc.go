// Package channel is a channel (core/channel) as a node of a pipeline: it is served while the run lasts, and what reaches its slot becomes
// items, so that programs beside the run take them with rlhost.Channel in Python or core/channel/remote in Go.
// With gives in its table, it is the other way about: items that programs put become messages of its signal get.
//
// An item is what rlhost.Channel.put makes of a dict: of an episode its values, of a trajectory its columns as arrays [steps, rows, ...].
package channel

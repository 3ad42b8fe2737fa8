// Package channel is a channel (core/channel) as a node of a pipeline: it is served while the run lasts, and what reaches its slot becomes
// items, so that programs beside the run take them with rlhost.Channel in Python or core/channel/remote in Go.
//
// An item is what rlhost.Channel.put makes of a dict: of an episode its values, of a trajectory its columns as arrays [steps, rows, ...].
package channel

// Package proxy lets a component run in its own process.
//
//	c, err := proxy.New(ctx, runtime, spawn.Program{Name: "shaper", Path: "bin/shaper"}, "shaper")
//	m := c.Manifest() // as the program describes it
//
// The component is a proxy: it runs on a loop of the host, forwards its slots' messages to the process and emits
// the process's. When the process dies, stalls or breaks the protocol, the proxy cleans up after it and starts
// another one; see spawn.Program.Restarts.
//
// After a death the messages that the process had sent count, blocks that it had on loan are free again, its leases are released, and its
// successor gets: the newest state that the host took or gave, the newest message of each slot with a connection of mode latest, and all
// unfinished messages, in order. So a message may be handled twice, and the effect of a message finished after the state was taken is lost.
// Four counters say so for each component: process/deaths/NAME; process/restarts/NAME; process/lost_messages/NAME; and
// process/rejected_messages/NAME. Lost messages are the ones finished since the state that the successor began with, except the message that
// the process worked on when that was taken at a boundary; without a state, they are the messages whose blocks the dead process still held.
//
// Locks, in the order in which they are taken: a link's lock of receiving or the lock of a set of arenas,
// proxy.mu, session.mu, a link's lock of sending.
package proxy

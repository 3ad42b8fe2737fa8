// Package proxy lets a component live in a process of its own.
//
//	c, err := proxy.New(ctx, runtime, spawn.Program{Name: "shaper", Path: "bin/shaper"}, "shaper")
//	m := c.Manifest() // as the program describes it
//
// The component is a proxy: it lives on a loop of the host, sends what its slots get to the process
// and emits what comes back. When the process dies, stalls or breaks the protocol, the proxy cleans up behind it
// and starts another one; see spawn.Program.Restarts.
//
// After a death the messages that the process had sent count, blocks that it had on loan are free again, its leases
// are given back, and its successor gets: the newest state that the host took or gave, the newest message of each
// slot with a connection of mode latest, and everything that was not finished with, in order; so a message may be
// handled twice, and the effect of one that was finished after the state was taken is lost. Four counters tell,
// for each component: process/deaths/NAME; process/restarts/NAME; process/lost_messages/NAME, which are those finished with since the
// state that the successor began with, but for the one that the process was at when that was taken at a boundary; or, if there was none, those whose blocks the dead process still held; and
// process/rejected_messages/NAME.
//
// Locks, in the order in which they are taken: a link's lock of receiving or that of a set of arenas, proxy.mu,
// session.mu, a link's lock of sending.
package proxy

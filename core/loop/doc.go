// Package loop runs the slots of components one at a time, on event loops with timers.
//
// A Loop runs on one goroutine: the caller of Run. Each component on it has a Receiver, through which
// messages reach the component's slots. A loop has two lanes. The data lane carries what connections deliver,
// strictly first in, first out, and is bounded by the depths of those connections. The control lane carries
// stop, timers, credits and requests; it is never full, it is served first, and between any two data messages
// the loop looks at it again. Pausing a Receiver keeps back its data, in order, and nothing else.
//
//	l := loop.New("rollout")
//	r := l.NewReceiver("rollout[0]")
//	r.Every(time.Second, report)
//	r.Post(func(m *hostabi.Message) { step(m.T) }, hostabi.Message{T: 3})
//	err := l.Run(ctx) // until l.Stop, l.Fail, a panic in a slot, or the end of ctx
//	l.Close()         // drops the messages still queued
//
// A component may be replaced while the loop runs. The new receiver is held before anything is posted: that keeps back
// all its messages, control messages and timers too, until Release. Requeue gives the pending messages of the old one to
// its successor, and Close drops the rest, after which the loop keeps no reference to it. Do calls a function while no
// slot of the loop runs, from any goroutine.
//
// A loop that has nothing to do sleeps, and a post wakes it. With SetSource it sleeps where other input arrives,
// such as a ring that another process writes to, and a post wakes it there.
//
// Everything except Run and Close may be called from any goroutine, also from a running slot: a post never runs a slot
// inline. Do and Receiver.Close wait for the slot that runs, unless they are called on the loop itself: so slots of two
// loops must not wait for each other with them.
//
// Locks: a Loop has one mutex, held for a few stores and never while foreign code runs. It is a leaf: code that holds
// it takes no other lock. A Timer's mutex is a leaf too, and is never held together with a loop's. State of the loop
// itself is guarded by its one token, which Run, Close and Do take. No lock may be held while waiting for it.
//
// core/bus decides the meaning of a message, which slot gets it and what happens when there are too many.
package loop

// Package loop runs the slots of components one at a time, on event loops with timers.
//
// A Loop is one goroutine's work: whoever calls Run. Each component on it has a Receiver, through which
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
//	l.Close()         // drops what was still queued
//
// A loop that has nothing to do sleeps, and a post wakes it. With SetSource it sleeps where something else that it
// lives on arrives, such as a ring that another process writes to, and a post wakes it there.
//
// Everything except Run and Close may be called from any goroutine, also from a slot that the loop is running:
// a post never runs a slot inline.
//
// Locks: a Loop has one mutex, held for a few stores and never while foreign code runs. It is a leaf: code that
// holds it takes no other lock. A Timer's mutex is a leaf too, and is never held together with a loop's.
//
// What a message means, who gets it and what happens when there are too many is core/bus's business.
package loop

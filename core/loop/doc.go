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
// A component may be put in another's place while the loop runs. Its receiver is held before anything is posted: that
// keeps back all that is for it, control messages and timers too, until Release. The other one's is waited for with
// Behind, which calls a function once what is queued now has been handled, gives what waits to its successor with
// Requeue, and is closed: what is left is dropped, and the loop keeps no reference to it. Do calls a function while no
// slot of the loop runs, from wherever it is called.
//
// A loop that has nothing to do sleeps, and a post wakes it. With SetSource it sleeps where something else that it
// lives on arrives, such as a ring that another process writes to, and a post wakes it there; or with Lazy a little
// longer, so that it costs those who post little.
//
// Everything except Run and Close may be called from any goroutine, also from a slot that the loop is running:
// a post never runs a slot inline. Do and Receiver.Close wait for the slot that runs, unless they are called on the loop
// itself: so slots of two loops must not wait for each other with them.
//
// Locks: a Loop has one mutex, held for a few stores and never while foreign code runs. It is a leaf: code that
// holds it takes no other lock. A Timer's mutex is a leaf too, and is never held together with a loop's. What only the
// loop touches is touched by who has its one token: Run, Close or Do. No lock may be held while waiting for that.
//
// What a message means, who gets it and what happens when there are too many is core/bus's business.
package loop

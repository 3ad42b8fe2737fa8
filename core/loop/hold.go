package loop

import "github.com/rlhost/rlhost/hostabi"

// heldUnit is what a Hold adds to Receiver.paused, so that the loop finds pauses and holds in one load. There are never
// half as many pauses.
const heldUnit = 1 << 20

// Hold keeps back all messages for the component, from the next one on: data, control messages and timers. Other
// components on the loop go on. It is for a component that is being prepared on a running loop, and takes effect at
// once when nothing was posted yet. Calls nest: each Hold needs a Release.
func (r *Receiver) Hold() { r.paused.Add(heldUnit) }

// Release undoes one Hold. After the last one the loop handles what was kept back: first the control messages, in
// order, then the data, before what is posted from now on. A timer that came due meanwhile fires once. Data waits on
// if the receiver is paused.
func (r *Receiver) Release() {
	r.loop.postControl(r.loop.self, (*releasing)(r), &hostabi.Message{})
}

// Held reports whether a Hold is in force: until the loop has come to its Release.
func (r *Receiver) Held() bool { return r.isHeld() }

func (r *Receiver) isHeld() bool { return r.paused.Load() >= heldUnit/2 }

func (r *Receiver) counts() (pauses, holds int) {
	n := int(r.paused.Load())
	holds = (n + heldUnit/2) / heldUnit
	return n - holds*heldUnit, holds
}

// releasing is the control message that ends a Hold. It belongs to the loop itself, so that it is not kept back.
type releasing Receiver

func (p *releasing) Deliver(*hostabi.Message) {
	r := (*Receiver)(p)
	if !r.isHeld() {
		return // released more often than held
	}
	r.paused.Add(-heldUnit)
	for r.urgent.n > 0 && !r.isHeld() {
		it := r.urgent.pop()
		r.loop.unkeep(r)
		r.loop.run(it)
	}
	if !r.isHeld() {
		(*resumption)(r).Deliver(nil)
	}
}

func (p *releasing) Drop(*hostabi.Message) {}

// Behind calls fn on the loop once all that is queued on the component's data lane now has been handled, including
// messages kept back by a pause; with nothing in front of it, fn is called even if the receiver is paused. A held
// receiver keeps it back. It reports whether the loop took it; if the receiver or the loop is closed before its turn
// comes, fn is not called.
func (r *Receiver) Behind(fn func()) bool {
	return r.loop.post(r, marker(fn), &hostabi.Message{})
}

// marker is the message of a Behind.
type marker func()

func (f marker) Deliver(*hostabi.Message) { f() }
func (f marker) Drop(*hostabi.Message)    {}

// isDue reports whether an item with nothing in front of it may be handled although r is paused.
func (r *Receiver) isDue(it *item) bool {
	_, is := it.t.(marker)
	return is && !r.isHeld()
}

package loop

import "github.com/rlhost/rlhost/hostabi"

// A Hold adds heldUnit to Receiver.paused, so that the loop finds pauses and holds in one load. There are never half as many pauses.
const heldUnit = 1 << 20

// Hold keeps back all messages for the component, from the next one on: data, control messages and timers. Other
// components on the loop continue. It is for a component that is being prepared on a running loop, and takes effect
// at once if nothing was posted yet. Calls nest: each Hold needs a Release.
func (r *Receiver) Hold() { r.paused.Add(heldUnit) }

// Release undoes one Hold. After the last one the loop handles the messages kept back, before any posted later: first the control
// messages, in order, then the data. A timer that came due meanwhile fires once. Data keeps waiting if the receiver is paused.
func (r *Receiver) Release() {
	r.loop.postControl(r.loop.self, (*releasing)(r), &hostabi.Message{})
}

// Held reports whether a Hold is in force: until the loop has handled its Release.
func (r *Receiver) Held() bool { return r.paused.Load() >= heldUnit/2 }

func (r *Receiver) counts() (pauses, holds int) {
	n := int(r.paused.Load())
	holds = (n + heldUnit/2) / heldUnit
	return n - holds*heldUnit, holds
}

// releasing is the control message that ends a Hold. It belongs to the loop itself, so that it is not kept back.
type releasing Receiver

func (p *releasing) Deliver(*hostabi.Message) {
	r := (*Receiver)(p)
	if !r.Held() {
		return // released more often than held
	}
	r.paused.Add(-heldUnit)
	for r.urgent.Len() > 0 && !r.Held() {
		it := r.urgent.Pop()
		r.loop.unkeep(r)
		r.loop.run(it)
	}
	if !r.Held() {
		(*resumption)(r).Deliver(nil)
	}
}

func (p *releasing) Drop(*hostabi.Message) {}

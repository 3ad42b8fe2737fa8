package link

import "github.com/rlhost/rlhost/core/loop"

// limitAge is how many messages a port's limit is taken as known for; a full port asks at once.
const limitAge = 64

// portState is the state of one port of this end.
type portState struct {
	unacked int
	limit   int // as last read
	left    int // messages until the limit is read again
	full    bool
}

// windows are the windows of this end's ports and the window of all of them together. The component is paused while one
// is full, or while it is held back. Guarded by Link.tx.
type windows struct {
	receiver *loop.Receiver
	limit    func(port int) int // Config.Limit
	most     int                // Config.Window

	ports  []portState
	full   int  // windows of ports that are full
	whole  bool // the window of all ports together is full
	held   bool // HoldBack
	ended  bool // the component is no longer paused
	paused bool // the windows have paused the component
	pauses uint64
}

// add counts a message that was sent through a port; unacked is how many are under way through all.
func (w *windows) add(port, unacked int) {
	p := &w.ports[port]
	p.unacked++
	if p.left--; p.left < 0 || p.limit > 0 && p.unacked >= p.limit {
		p.left, p.limit = limitAge, 0
		if w.limit != nil {
			p.limit = w.limit(port)
		}
	}
	if !p.full && p.limit > 0 && p.unacked >= p.limit {
		p.full = true
		w.full++
	}
	if w.most > 0 && unacked >= w.most {
		w.whole = true
	}
	w.settle()
}

// remove takes a message out that was acknowledged. The caller settles.
func (w *windows) remove(port, unacked int) {
	p := &w.ports[port]
	p.unacked--
	if p.full && p.unacked <= p.limit/2 {
		p.full = false
		w.full--
	}
	if w.whole && unacked <= w.most/2 {
		w.whole = false
	}
}

// settle pauses or resumes the component as the windows say.
func (w *windows) settle() {
	full := w.full > 0 || w.whole
	want := (full || w.held) && !w.ended
	if want == w.paused {
		return
	}
	w.paused = want
	if want {
		if full {
			w.pauses++
		}
		w.receiver.Pause()
		return
	}
	w.receiver.Resume()
}

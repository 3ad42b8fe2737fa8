package link

import (
	"errors"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// limitAge is how many messages a port's limit is taken as known for; a full port asks at once.
const limitAge = 64

// Send gives a message of data to the peer: at the host for the slot of that index, at a plugin from the signal of
// that index. It never waits: messages that the ring has no room for are kept and follow in order. A block that
// the message carries is claimed until the peer has finished with the message; one that is still on loan is not,
// and its row counts as asked about until a message about the same row comes back.
//
// It may be called from any goroutine; normally it is called on the component's loop. After Stop the message is kept
// for Unfinished. Errors, after which the message was not taken: what the claim returned, or ErrStopped once
// Unfinished was called.
func (l *Link) Send(port int, m *hostabi.Message) error {
	claimed, onLoan, err := l.claim(port, m.Handle)
	if err != nil {
		return err
	}
	l.tx.Lock()
	defer l.tx.Unlock()
	if l.emptied {
		return errors.Join(ErrStopped, l.unclaim(claimed, m.Handle))
	}
	asks := onLoan && l.config.Host && !l.answers(m)
	l.enter(port, m, claimed, asks)
	return nil
}

// claim adds the claim of a message that is under way. A block that is still on loan has no claims.
func (l *Link) claim(port int, h hostabi.Handle) (claimed, onLoan bool, err error) {
	switch {
	case h == 0:
		return false, false, nil
	case l.config.Sends[port].OnLoan:
		return false, true, nil
	}
	err = l.config.Arenas.Retain(h)
	if errors.Is(err, arena.ErrState) {
		return false, true, nil
	}
	return err == nil, false, err
}

func (l *Link) unclaim(claimed bool, h hostabi.Handle) error {
	if !claimed {
		return nil
	}
	return l.config.Arenas.Release(h)
}

// enter notes a message and puts it into the ring. The caller must hold tx.
func (l *Link) enter(port int, m *hostabi.Message, claimed, asks bool) {
	l.accepted++
	e := l.sent.push()
	*e = entry{message: *m, number: l.accepted, port: port, claimed: claimed, asks: asks}
	if l.config.Host {
		e.message.Slot = uint16(port)
	} else {
		e.message.Signal, e.message.Slot = uint16(port), 0
	}
	if asks {
		l.open = append(l.open, *e)
	}
	l.count(port)
	if !l.stopped.Load() {
		l.transmit(&e.message)
	}
}

// count adds a message to its port's window and to that of all. The caller must hold tx.
func (l *Link) count(port int) {
	p := &l.ports[port]
	p.unacked++
	if p.left--; p.left < 0 || p.limit > 0 && p.unacked >= p.limit {
		p.left, p.limit = limitAge, l.limit(port)
	}
	if !p.full && p.limit > 0 && p.unacked >= p.limit {
		p.full = true
		l.full++
	}
	if w := l.config.Window; w > 0 && l.sent.n >= w {
		l.whole = true
	}
	l.settlePause()
}

func (l *Link) limit(port int) int {
	if l.config.Limit == nil {
		return 0
	}
	return l.config.Limit(port)
}

// settlePause pauses or resumes the component as its windows say. The caller must hold tx.
func (l *Link) settlePause() {
	full := l.full > 0 || l.whole
	want := (full || l.held) && !l.stopped.Load()
	if want == l.paused {
		return
	}
	l.paused = want
	if want {
		if full {
			l.pauses++
		}
		l.config.Receiver.Pause()
		return
	}
	l.config.Receiver.Resume()
}

// HoldBack keeps the component's data lane paused, as a full window does, until it is called with false or the link is
// stopped. Any goroutine.
func (l *Link) HoldBack(on bool) {
	l.tx.Lock()
	defer l.tx.Unlock()
	l.held = on
	l.settlePause()
}

// Post gives the peer a message about the link itself; its Slot is LinkControl or above. It may be called from any
// goroutine and never waits. After Stop it does nothing.
func (l *Link) Post(m hostabi.Message) {
	l.tx.Lock()
	defer l.tx.Unlock()
	if !l.stopped.Load() {
		l.transmit(&m)
	}
}

// transmit puts a message into the ring, behind those that wait for room. The caller must hold tx.
func (l *Link) transmit(m *hostabi.Message) {
	if l.queue.n == 0 && l.putOne(m) {
		return
	}
	*l.queue.push() = *m
	l.flush()
}

// flush puts pending messages into the ring, as far as there is room now. The caller must hold tx.
func (l *Link) flush() {
	for l.queue.n > 0 && l.putOne(l.queue.at(0)) {
		l.queue.pop()
	}
}

// putOne puts one message, which also says what this end has finished with.
func (l *Link) putOne(m *hostabi.Message) bool {
	l.one[0] = *m
	finished := l.finished.Load()
	l.one[0].Ctl = finished
	if l.config.Transport.Put(l.one[:]) == 0 {
		return false
	}
	l.told = finished
	if m.Slot < hostabi.LinkControl {
		l.put++
	}
	return true
}

// answers reports whether m answers a request of the peer, which is then no longer open. The caller must hold tx.
func (l *Link) answers(m *hostabi.Message) bool {
	q := question{m.Handle, m.T}
	if i := slices.Index(l.asked, q); i >= 0 {
		l.asked = slices.Delete(l.asked, i, i+1)
		return true
	}
	return false
}

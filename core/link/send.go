package link

import (
	"errors"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// Send gives a message of data to the peer: at the host for the slot of that index, at a plugin from the signal of
// that index. It never waits: messages that the ring has no room for are kept and follow in order. A block that
// the message carries is claimed until the peer has finished with the message. A block that is still on loan is
// not claimed; the message then counts as a request until a message about the same row comes back.
//
// It may be called from any goroutine; normally it is called on the component's loop. After Stop the message is kept for
// Unfinished. Errors, after which the message was not taken: the claim's error, or ErrStopped once Unfinished was called.
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
	asks := onLoan && l.config.Host && !l.requests.answers(m)
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
	e := l.sent.Push()
	*e = entry{message: *m, number: l.accepted, port: port, claimed: claimed, asks: asks}
	if l.config.Host {
		e.message.Slot = uint16(port)
	} else {
		e.message.Signal, e.message.Slot = uint16(port), 0
	}
	if asks {
		l.requests.open = append(l.requests.open, *e)
	}
	l.windows.add(port, l.sent.Len())
	if !l.stopped.Load() {
		l.transmit(&e.message)
	}
}

// HoldBack keeps the component's data lane paused, as a full window does, until it is called with false or the link is
// stopped. Any goroutine.
func (l *Link) HoldBack(on bool) {
	l.tx.Lock()
	defer l.tx.Unlock()
	l.windows.held = on
	l.windows.settle()
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

// transmit puts a message into the ring, after the messages that wait for room. The caller must hold tx.
func (l *Link) transmit(m *hostabi.Message) {
	if l.queue.Len() == 0 && l.putOne(m) {
		return
	}
	*l.queue.Push() = *m
	l.flush()
}

// flush puts pending messages into the ring, as far as there is room now. The caller must hold tx.
func (l *Link) flush() {
	for l.queue.Len() > 0 && l.putOne(l.queue.At(0)) {
		l.queue.Pop()
	}
}

// putOne puts one message, with the newest acknowledgement.
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

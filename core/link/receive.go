package link

import (
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

const (
	// ackBehind is how many messages the peer may not have heard of while the loop has no time to be idle.
	ackBehind = hostabi.LinkWindow / 2
	// ackAge is after how many polls without a message to the peer an acknowledgement is sent anyway.
	ackAge = 8
	// How long a wait lasts at most. A short one is for events without a wake-up: room in the ring, a resumed
	// component, and, on the link's own goroutine, a loop with nothing more to send.
	longWait  = 100 * time.Millisecond
	shortWait = time.Millisecond
)

var _ loop.Source = (*Link)(nil)

// Poll takes a batch of messages out of the ring and delivers them. It is the loop's to call.
func (l *Link) Poll() { l.take(false) }

// Wait waits for messages; see loop.Source. It is the loop's to call, or a slot's that waits for the peer.
func (l *Link) Wait() {
	l.rx.Lock()
	defer l.rx.Unlock()
	l.wait()
}

// Nudge makes Wait return.
func (l *Link) Nudge() { l.config.Transport.Nudge() }

// Drain delivers the messages that the peer had put before it ended. Call it after Stop, while the rings are still
// open. It returns the peer's fault, if it finds one.
func (l *Link) Drain() error {
	for l.take(true) > 0 {
	}
	return l.Err()
}

// ended reports that nothing more will come.
func (l *Link) ended() bool {
	return l.stopped.Load() || l.fault.Load() != nil || l.config.Transport.IsShut() && l.config.Transport.Len() == 0
}

// take delivers one batch and returns how many messages it had.
func (l *Link) take(draining bool) int {
	l.rx.Lock()
	if l.fault.Load() != nil || l.stopped.Load() != draining {
		l.rx.Unlock()
		return 0
	}
	if l.pumping {
		l.delivering.Store(true)
	}
	n := l.config.Transport.Get(l.buffer[:])
	var err error
	for i := 0; i < n && err == nil; i++ {
		err = l.receive(&l.buffer[i])
	}
	first := err != nil && l.fail(err)
	if err == nil && !draining {
		l.afterBatch()
	}
	if l.pumping {
		l.delivering.Store(false)
	}
	l.rx.Unlock()
	if first && l.config.Fault != nil {
		l.config.Fault(err)
	}
	return n
}

// receive handles one message. The caller must hold rx.
func (l *Link) receive(m *hostabi.Message) error {
	if m.Ctl != l.ackSeen {
		if err := l.acknowledged(m.Ctl); err != nil {
			return err
		}
	}
	m.Ctl = 0
	switch {
	case m.Slot == hostabi.LinkAck:
		return nil
	case m.Slot >= hostabi.LinkControl:
		return l.config.Control(m)
	}
	port := int(m.Slot)
	if l.config.Host {
		port = int(m.Signal)
	}
	if port >= len(l.config.Receives) {
		return l.blame("message for port %d of %d", port, len(l.config.Receives))
	}
	l.received.Add(1)
	if l.config.Host {
		return l.receiveAtHost(port, m)
	}
	l.config.Receiver.PostTo((*posted)(l), m)
	return nil
}

// receiveAtHost delivers a message where it arrived. The message is then finished: the host has claimed the blocks that it needs.
func (l *Link) receiveAtHost(port int, m *hostabi.Message) error {
	onLoan := l.config.Receives[port].OnLoan
	if onLoan && m.Handle != 0 {
		answers := 1
		if l.config.Answers != nil {
			answers = l.config.Answers(port)
		}
		l.tx.Lock()
		room := l.requests.arrived(m, answers)
		l.tx.Unlock()
		if !room {
			return l.blame("more than %d requests are open", maxAsked)
		}
	}
	urgent := m.Handle != 0 && !onLoan
	if err := l.config.Deliver(port, m); err != nil {
		return err
	}
	l.finish(urgent)
	return nil
}

// acknowledged ends messages that the peer has finished with. The caller must hold rx.
func (l *Link) acknowledged(upTo uint64) error {
	l.releases = l.releases[:0]
	l.tx.Lock()
	if upTo < l.acked || upTo > l.put {
		put, acked := l.put, l.acked
		l.tx.Unlock()
		return l.blame("acknowledged %d messages of %d, %d before", upTo, put, acked)
	}
	for l.acked < upTo {
		e := l.sent.Pop()
		l.acked++
		if e.claimed {
			l.releases = append(l.releases, e.message.Handle)
		}
		l.windows.remove(e.port, l.sent.Len())
	}
	l.ackSeen = upTo
	l.windows.settle()
	l.flush()
	l.tx.Unlock()
	for _, h := range l.releases {
		if err := l.config.Arenas.Release(h); err != nil {
			return l.blame("release %v: %v", h, err)
		}
	}
	return nil
}

// posted is a message of data on its way through the component's data lane, at a plugin.
type posted Link

// Deliver runs the slot.
func (p *posted) Deliver(m *hostabi.Message) {
	l := (*Link)(p)
	urgent := m.Handle != 0 && !l.onLoan(m.Handle)
	if err := l.config.Deliver(int(m.Slot), m); err != nil && l.fail(err) && l.config.Fault != nil {
		l.config.Fault(err)
	}
	l.finish(urgent)
	if l.finished.Load()-l.tellings() >= ackBehind || urgent {
		l.tell()
	}
}

// Drop is for a loop that has been closed: the component is gone.
func (p *posted) Drop(*hostabi.Message) {}

// onLoan reports whether the block is on loan, to the sender of the request about it.
func (l *Link) onLoan(h hostabi.Handle) bool {
	a, err := l.config.Arenas.Of(h)
	if err != nil {
		return false
	}
	_, err = a.Loaned(h)
	return err == nil
}

package bus

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
)

// ErrDisconnected is returned for a connection that was disconnected before.
var ErrDisconnected = errors.New("connection is disconnected")

// MoveSignal makes another signal of the same payload, a successor's, send on c instead of c's signal. Pending messages
// are delivered first, and the sequence continues: it includes to.Continue. Parked messages then pause the successor,
// not the predecessor. In mode Queue, move all connections of a signal before the successor emits.
//
// Both signals must have the same Retainer. The predecessor should be paused. If it is not, none of its messages is
// lost, but they may arrive after the successor's.
func MoveSignal(c *Connection, to *Signal) error {
	from := c.lockSignals(to)
	if from == to {
		return nil
	}
	orphans, err := c.change(from, to)
	to.mu.Unlock()
	from.mu.Unlock()
	if err != nil {
		return fmt.Errorf("move slot %q from signal %q to %q: %w", c.Slot().name, from.name, to.name, err)
	}
	c.abandon(&orphans)
	return nil
}

// lockSignals locks the connection's signal, which it returns, and another one; if they are the same it locks nothing.
func (c *Connection) lockSignals(other *Signal) *Signal {
	for {
		s := c.lockSignal()
		if s != other && other.mu.TryLock() { // two locks of a kind, in no order
			return s
		}
		s.mu.Unlock()
		if s == other {
			return s
		}
		runtime.Gosched()
	}
}

// change, with mu of both signals held, takes c from one to the other.
func (c *Connection) change(from, to *Signal) (orphans fifo, err error) {
	switch {
	case c.isClosed():
		return orphans, ErrDisconnected
	case from.payload != to.payload:
		return orphans, fmt.Errorf("payload types differ: %q and %q", from.payload, to.payload)
	case !sameRetainer(from.retainer, to.retainer):
		return orphans, errors.New("they count blocks apart")
	}
	if err := to.route(c, from); err != nil {
		return orphans, err
	}
	from.unroute(c)
	orphans = c.changeParking(from, to)
	c.signal.Store(to)
	return orphans, nil
}

func sameRetainer(a, b Retainer) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && t.Comparable() && a == b
}

// changeParking moves the messages that wait for room on c to another signal's parking.
func (c *Connection) changeParking(from, to *Signal) (orphans fifo) {
	p := c.parking.Load()
	switch {
	case p == nil:
		return orphans
	case c.options.Mode == Queue:
		return from.queue.passOn(c, &to.queue)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.owner
	p.owner = to.owner
	if p.active.Load() {
		if p.owner != nil {
			p.owner.Pause()
		}
		if old != nil {
			old.Resume()
		}
	}
	return orphans
}

// passOn makes c a connection of another signal's queue. With the last connection, pending messages move too,
// to the front.
func (p *parking) passOn(c *Connection, to *parking) (orphans fifo) {
	for p.mu.Lock(); !to.mu.TryLock(); p.mu.Lock() { // two locks of a kind, in no order
		p.mu.Unlock()
		runtime.Gosched()
	}
	defer p.mu.Unlock()
	defer to.mu.Unlock()
	gone := func(o *Connection) bool { return o == c || o.isClosed() }
	p.open = slices.DeleteFunc(p.open, gone)
	to.open = append(slices.DeleteFunc(to.open, gone), c)
	if len(p.open) == 0 && p.waiting.Len() > 0 {
		for to.waiting.Len() > 0 {
			*p.waiting.Push() = *to.waiting.Pop()
		}
		to.waiting, p.waiting = p.waiting, fifo{}
		p.tellEmpty()
		to.activate()
	}
	c.parking.Store(to)
	p.settle() // nothing is pending, or a connection is left
	return to.settle()
}

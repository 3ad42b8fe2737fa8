package bus

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
)

// ErrDisconnected is returned for a connection that was disconnected or moved before.
var ErrDisconnected = errors.New("connection is disconnected")

// Move makes the messages of c's signal go to another slot of the same payload, atomically: messages that c has queued
// still reach the old slot, and nothing is queued there afterwards; parked messages and those emitted from then on,
// also by an Emit in progress, go to the new slot. No message is lost, delivered twice or overtaken by a later one. The
// returned connection has c's options; c keeps its counters, and no new message enters it. In mode Latest the new slot
// gets the newest message at once, as from Connect.
//
// It may be called at any time, from any goroutine.
func Move(c *Connection, to *Slot) (*Connection, error) {
	sig := c.lockSignal()
	next, orphans, err := c.moveTo(sig, to)
	if err != nil {
		sig.mu.Unlock()
		return nil, fmt.Errorf("move signal %q to slot %q: %w", sig.name, to.name, err)
	}
	sig.routes.Store(sig.routes.Load().replacing(c, next))
	newest := c.newest()
	sig.memory.note(&newest)
	sig.mu.Unlock()
	c.abandon(&orphans)
	next.beginWithNewest()
	return next, nil
}

// moveTo closes c in favour of a new connection. From then on emitters that have the old routes forward to it. The
// caller must hold sig.mu.
func (c *Connection) moveTo(sig *Signal, to *Slot) (next *Connection, orphans fifo, err error) {
	if c.isClosed() {
		return nil, orphans, ErrDisconnected
	}
	if sig.payload != to.payload {
		return nil, orphans, fmt.Errorf("payload types differ: %q and %q", sig.payload, to.payload)
	}
	next = newConnection(sig, to, c.options)
	to.add(next)
	p := c.parking.Load()
	if p == nil {
		c.giveWay(next)
		return next, orphans, nil
	}
	next.parking.Store(p)
	p.mu.Lock()
	p.open = append(slices.DeleteFunc(p.open, func(o *Connection) bool { return o == c }), next)
	c.giveWay(next)
	orphans = p.settle()
	p.mu.Unlock()
	return next, orphans, nil
}

// giveWay closes c; later messages go to next.
func (c *Connection) giveWay(next *Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.movedTo = true, next
	c.slot.remove(c)
}

// Undo reverts Moves, given the connections that were moved: messages pending at the new slots, in whatever order they
// came, go to the previous slots, behind what is queued there, and so do all later ones. The connections that Move
// returned stay in use, with the previous slots; those that were moved keep what they had queued there. The new slots
// must belong to components on one loop; Undo waits for the slot that runs there, unless it is called on that loop. A
// connection that has been moved again is an error, and nothing happens. It is a case of Redirect.
func Undo(moved ...*Connection) error {
	ways := make([]Way, len(moved))
	for i, c := range moved {
		h := c.successor()
		if h == nil || h.successor() != nil || h.Slot() == c.Slot() {
			return fmt.Errorf("undo the move of signal %q: it is not the last", c.Signal().name)
		}
		ways[i] = Way{h, c.Slot()}
	}
	return Redirect(ways...)
}

// MoveSignal makes another signal of the same payload, a successor's, send on c in place of c's own. Pending messages
// are delivered first, and the sequence continues: it includes to.Continue. Parked messages pause the successor, and no
// longer the predecessor. In mode Queue, move all connections of a signal before the successor emits.
//
// Both signals must have the same Retainer. The component behind the old signal should be at rest; no message of it
// is lost if it is not, but it may come after those of its successor.
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
	if len(p.open) == 0 && p.waiting.n > 0 {
		for to.waiting.n > 0 {
			p.waiting.push(to.waiting.pop())
		}
		to.waiting, p.waiting = p.waiting, fifo{}
		to.activate()
	}
	c.parking.Store(to)
	p.settle() // nothing is pending, or a connection is left
	return to.settle()
}

package bus

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/loop"
)

// Way is a connection and the slot to redirect it to.
type Way struct {
	Connection *Connection
	To         *Slot
}

// Redirect makes connections lead to other slots of the same payload, pending messages included: the previous slots get nothing more, not
// even messages already queued for them. No message is lost, delivered twice or overtaken by a later one. In mode Latest a slot with nothing
// pending gets the newest message again, as from Connect: the previous slot took it. The connections stay in use with their counters.
//
// The previous slots must belong to components on one loop, which should be paused; Redirect waits for the slot that
// runs there, unless it is called on it. On an error nothing has happened.
func Redirect(ways ...Way) error {
	for {
		on, err := loopOf(ways)
		if on == nil || err != nil {
			return err
		}
		there := true
		on.Do(func() { there = redirect(on, ways) })
		if there {
			break
		}
	}
	for _, w := range ways {
		w.Connection.again()
	}
	return nil
}

// loopOf returns the loop of the previous slots; nil if there are no ways.
func loopOf(ways []Way) (on *loop.Loop, err error) {
	seen := map[*Connection]bool{}
	for _, w := range ways {
		c, slot := w.Connection, w.Connection.Slot()
		fail := func(format string, args ...any) (*loop.Loop, error) {
			return nil, fmt.Errorf("redirect signal %q to slot %q: %w", c.Signal().name, w.To.name, fmt.Errorf(format, args...))
		}
		l := slot.receiver.Loop()
		switch {
		case slot.payload != w.To.payload:
			return fail("payload types differ: %q and %q", slot.payload, w.To.payload)
		case on != nil && on != l:
			return fail("slots are on loops %q and %q", on.Name(), l.Name())
		case seen[c]:
			return fail("it is given twice")
		}
		on, seen[c] = l, true
	}
	return on, nil
}

// redirect runs on the loop of the previous slots, or reports that they are no longer there. A connection's slot is
// changed only on the loop it leads to, so redirect reads current values, and nothing else holds the locks of
// several connections to this loop. It holds them so that no new message overtakes a pending one.
func redirect(on *loop.Loop, ways []Way) bool {
	for _, w := range ways {
		if w.Connection.Slot().receiver.Loop() != on {
			return false
		}
	}
	var refused []func()
	defer func() {
		for _, drop := range refused {
			drop()
		}
	}()
	for _, w := range ways {
		w.Connection.mu.Lock()
		defer w.Connection.mu.Unlock()
	}
	type ends struct{ from, to *loop.Receiver }
	leads := map[*delivery]ends{}
	var from []*loop.Receiver
	for _, w := range ways {
		c := w.Connection
		r := c.slot.receiver
		if !slices.Contains(from, r) {
			from = append(from, r)
		}
		leads[(*delivery)(c)] = ends{r, w.To.receiver}
		c.lead(w.To)
	}
	for _, r := range from {
		refused = append(refused, r.Requeue(func(t loop.Target) *loop.Receiver {
			if d, ok := t.(*delivery); ok && leads[d].from == r {
				return leads[d].to
			}
			return nil // posts of a component to itself, and messages that have just come from another
		}))
	}
	return true
}

// lead directs deliveries to another slot. The caller must hold mu.
func (c *Connection) lead(to *Slot) {
	c.slot.remove(c)
	c.slot, c.since = to, c.last.Sequence
	if c.box.Len() > 0 {
		c.since = 0 // the slot gets that
	}
	if !c.closed {
		to.add(c)
	}
}

// again gives a connection of mode Latest the newest message, unless one is pending or the current slot has got one.
func (c *Connection) again() {
	if c.options.Mode != Latest {
		return
	}
	m, ok := c.Signal().Newest()
	if !ok || c.retain(m.Handle) != nil {
		return
	}
	c.mu.Lock()
	taken := !c.closed && c.box.Len() == 0 && c.last.Sequence <= c.since && m.Sequence >= c.since && c.enqueue(&m) == queued
	if taken {
		c.last = m
	}
	c.mu.Unlock()
	if !taken {
		c.release(m.Handle)
	}
}

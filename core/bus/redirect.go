package bus

import (
	"fmt"

	"github.com/rlhost/rlhost/core/loop"
)

// Way is a connection and the slot that it is to lead to.
type Way struct {
	Connection *Connection
	To         *Slot
}

// Redirect makes connections lead to other slots of the same payload, and takes along what waits: the slots of before
// get nothing more, not even what was queued for them, and nothing is lost, delivered twice or overtaken by a later
// message. In mode Latest a slot for which nothing waits gets the newest message again, as from Connect: who was there
// before took it. The connections stay in use with their counters.
//
// The slots of before must be of components on one loop, which should be at rest; Redirect waits for the slot that runs
// there, unless it is called on it. On an error nothing has happened.
func Redirect(ways ...Way) error {
	var on *loop.Loop
	for _, w := range ways {
		c := w.Connection
		l := c.Slot().receiver.Loop()
		switch {
		case c.Slot().payload != w.To.payload:
			return fmt.Errorf("redirect signal %q to slot %q: payload types differ: %q and %q",
				c.Signal().name, w.To.name, c.Slot().payload, w.To.payload)
		case on != nil && on != l:
			return fmt.Errorf("redirect signal %q: slots are on loops %q and %q", c.Signal().name, on.Name(), l.Name())
		}
		on = l
	}
	if on == nil {
		return nil
	}
	on.Do(func() { redirect(ways) })
	for _, w := range ways {
		w.Connection.again()
	}
	return nil
}

// again gives a connection of mode Latest the newest message, unless one waits.
func (c *Connection) again() {
	m, ok := c.Signal().Newest()
	if !ok || c.options.Mode != Latest || c.retain(m.Handle) != nil {
		return
	}
	c.mu.Lock()
	taken := !c.closed && c.box.n == 0 && c.enqueue(&m) == queued
	c.mu.Unlock()
	if !taken {
		c.release(m.Handle)
	}
}

package bus

import (
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// delivery is the receiving end of a connection, as the loop sees it.
type delivery Connection

var _ loop.Target = (*delivery)(nil)

// Deliver gives one message to the slot. Room is freed before the slot runs: the message it works on is no
// longer pending.
func (d *delivery) Deliver(m *hostabi.Message) {
	c := (*Connection)(d)
	if !c.take(m) {
		return
	}
	if c.discard.Load() {
		c.lose(m.Handle)
		return
	}
	if !c.claimed || m.Handle == 0 {
		c.slot.fn(m)
		return
	}
	defer c.release(m.Handle) // also when the slot panics
	c.slot.fn(m)
}

// Drop takes one message and drops it.
func (d *delivery) Drop(m *hostabi.Message) {
	c := (*Connection)(d)
	if c.take(m) {
		c.lose(m.Handle)
	}
}

// take counts the message as having left the queue and admits a pending one. A mailbox's message is written
// to m; it returns false if the mailbox was emptied by DisconnectNow.
func (c *Connection) take(m *hostabi.Message) bool {
	if c.mailbox {
		c.mu.Lock()
		if c.box.Len() == 0 {
			c.mu.Unlock()
			return false
		}
		*m = *c.box.Pop()
		c.taken.Add(1)
		c.mu.Unlock()
	} else {
		c.taken.Store(c.taken.Load() + 1) // written by the receiving loop alone
	}
	if p := c.parking.Load(); p != nil && p.active.Load() {
		p.admit(c)
	}
	return true
}

package batcher

import (
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// Pause stops the batcher from emitting datasets. It is at rest when those in flight have come back.
func (c *Batcher) Pause(rested func()) {
	c.pausing, c.rested = true, rested
	c.rest()
}

// rest calls rested once the batcher is at rest.
func (c *Batcher) rest() {
	if rested := c.rested; rested != nil && c.underWay() == 0 {
		c.rested = nil
		rested()
	}
}

// Resume continues with the rows gathered meanwhile.
func (c *Batcher) Resume() {
	c.pausing, c.rested = false, nil
	c.emit()
}

// Waiting hands over the trajectories that are not in a dataset yet.
func (c *Batcher) Waiting() []component.Waiting {
	var list []component.Waiting
	for _, t := range c.waiting {
		h := t.lease.Handle()
		if err := c.h.Arenas.Retain(h); err != nil {
			c.h.Fail(err)
			continue
		}
		c.removeWaiting(&t)
		c.release(t)
		list = append(list, component.Waiting{
			Slot:    "on_trajectories",
			Message: hostabi.Message{Handle: h, PolicyVersion: t.version, Split: t.split},
			Claimed: true,
		})
	}
	c.waiting = nil
	return list
}

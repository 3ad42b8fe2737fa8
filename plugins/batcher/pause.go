package batcher

import (
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// Pause makes the batcher hand out no more datasets. It is at rest when those that are under way have come back.
func (c *Batcher) Pause(rested func()) {
	c.pausing, c.rested = true, rested
	c.rest()
}

// rest calls who waits for the batcher to come to rest, once it has.
func (c *Batcher) rest() {
	if rested := c.rested; rested != nil && c.flying() == 0 {
		c.rested = nil
		rested()
	}
}

// Resume goes on with what has gathered meanwhile.
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
		c.unwait(&t)
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

package batcher

import (
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// Pause stops the batcher from emitting datasets. It is paused once the datasets in flight have come back.
func (b *Batcher) Pause(rested func()) {
	b.pausing, b.rested = true, rested
	b.checkPaused()
}

// checkPaused calls rested once the batcher is paused.
func (b *Batcher) checkPaused() {
	if rested := b.rested; rested != nil && b.underWay() == 0 {
		b.rested = nil
		rested()
	}
}

// Resume continues with the rows gathered meanwhile.
func (b *Batcher) Resume() {
	b.pausing, b.rested = false, nil
	b.emit()
}

// Waiting returns the trajectories that are not in a dataset yet.
func (b *Batcher) Waiting() []component.Waiting {
	var list []component.Waiting
	for _, t := range b.waiting {
		h := t.lease.Handle()
		if err := b.h.Arenas.Retain(h); err != nil {
			b.h.Fail(err)
			continue
		}
		b.removeWaiting(&t)
		b.release(t)
		list = append(list, component.Waiting{
			Slot:    "on_trajectories",
			Message: hostabi.Message{Handle: h, PolicyVersion: t.version, Split: t.split, Inline: t.rest()},
			Claimed: true,
		})
	}
	b.waiting = nil
	return list
}

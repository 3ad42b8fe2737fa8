package rollout

import "github.com/rlhost/rlhost/core/component"

// rest is what is known of a Pause.
type rest struct {
	wanted bool
	rested func() // nil once it was called
}

// Pause makes every split stop at the end of its block; one that waits for a block is at rest, unless it is behind.
func (c *Rollout) Pause(rested func()) {
	c.rest = rest{wanted: true, rested: rested}
	c.rests()
}

// rests tells who waits for it that the component is at rest, if it is.
func (c *Rollout) rests() {
	if c.rest.rested == nil {
		return
	}
	for _, s := range c.splits {
		if s.writing || s.behind() {
			return
		}
	}
	rested := c.rest.rested
	c.rest.rested = nil
	rested()
}

// behind reports whether another split has begun a block of a dataset that this one has no block in yet. In synchronous
// mode what is learned from that dataset waits for this split, whose credit has come with that of the other: who rests
// in between would keep the blocks of the others for good.
func (s *split) behind() bool {
	if !s.c.h.Run.Synchronous {
		return false
	}
	for _, other := range s.c.splits {
		if other.begun() > s.begun() {
			return true
		}
	}
	return false
}

// begun returns how many blocks the split has begun.
func (s *split) begun() uint64 {
	if s.writing {
		return s.sequence + 1
	}
	return s.sequence
}

// Resume lets the splits begin blocks again.
func (c *Rollout) Resume() {
	c.rest = rest{}
	for _, s := range c.splits {
		if !s.writing {
			s.begin()
		}
	}
}

// Waiting returns nothing: what the component asks for is answered before it comes to rest.
func (c *Rollout) Waiting() []component.Waiting { return nil }

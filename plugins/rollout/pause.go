package rollout

import "github.com/rlhost/rlhost/core/component"

// rest is what is known of a Pause.
type rest struct {
	wanted bool
	rested func() // nil once it was called
}

// Pause makes every split stop at the end of its block; one that waits for a block is at rest.
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
		if s.writing {
			return
		}
	}
	rested := c.rest.rested
	c.rest.rested = nil
	rested()
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

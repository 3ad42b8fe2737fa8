package rollout

import "github.com/rlhost/rlhost/core/component"

// Cancel gives the change up; see component.PreparedEnvs.
func (x *change) Cancel() {
	k := &x.c.changes
	k.mu.Lock()
	stage := x.stage
	if stage == preparing {
		x.stage = closed
	}
	k.mu.Unlock()
	switch {
	case stage == preparing:
		x.free()
		k.release(x)
	case stage == committed && !x.back && k.current == x:
		x.goBack()
	}
}

// falls reports whether a fault of a batch takes the component back to what ran before.
func (c *Rollout) falls(b *batch, fault error) bool {
	x := c.changes.current
	if b.tried && x != nil && !x.back && x.o.Falls != nil && !x.o.Falls(fault) {
		x.trust()
	}
	return b.tried
}

// fall takes the component back to what ran before the change that is on probation, because of a fault of its
// environments.
func (c *Rollout) fall(fault error) {
	x := c.changes.current
	if x == nil || x.back {
		return
	}
	c.h.Log.Warn("environments go back to the version before", "error", fault)
	x.fault = fault
	x.goBack()
}

// goBack sends every split that has gone over, or has begun to, back to where it came from. The others stay; what ends
// there from now on counts like what ends in those.
func (x *change) goBack() {
	c := x.c
	x.back, x.left = true, 0
	x.seeded = false
	for i, b := range x.batches {
		if b == nil {
			continue
		}
		s := c.splits[i]
		if s.next != nil && s.next.x == x {
			s.next.giveUp()
			s.next = nil
		}
		home := s.spare
		if s.sides != nil {
			home = s.batch
		}
		come := s.batch == b || s.sides != nil && s.sides.has(b)
		if !come || home == nil {
			home = s.batch
		}
		if !x.isTrial() {
			home.task = x.o.TaskBack // what ends on trial counts nowhere, so that nothing has to count again
			home.onTrial = false
		}
		if !come {
			c.changes.release(b)
			continue
		}
		s.next = &move{x: x, to: home, at: component.AtStep, back: true}
		x.left++
	}
	if x.left == 0 {
		x.isBack()
		return
	}
	for _, s := range c.splits {
		if s.next != nil && s.next.x == x {
			s.look()
		}
	}
}

// giveUp ends a move that is not to be made.
func (m *move) giveUp() {
	m.void = true
	if m.pad != nil {
		m.x.c.changes.release(m.pad)
		m.pad = nil
	}
}

// isBack is for a change of which nothing is left.
func (x *change) isBack() {
	x.free()
	if x.c.changes.current == x {
		x.c.changes.current = nil
	}
	if x.fault != nil && x.o.Fell != nil {
		x.o.Fell(x.fault)
	}
}

package rollout

import (
	"github.com/rlhost/rlhost/core/env"
)

// loseSide takes an error of one batch: it costs its environments the step that they were in, and those of others
// nothing. They wait for revive. What cannot be borne it returns.
func (s *split) loseSide(b *batch, err error) error {
	c, d := s.c, s.sides
	if isFault(err) {
		b.version.faults.Inc()
	}
	if c.falls(b, err) {
		c.fall(err)
		for env, owner := range d.owner {
			if owner == b {
				s.gone[env], s.anyGone = 1, true
				s.assign(env, s.batch)
			}
		}
		b.forgetWants()
		return nil
	}
	leaving := d.target != nil && d.target != b && d.share == s.n
	if !isFault(err) || !leaving && !c.spend() {
		return err
	}
	c.h.Log.Warn("environments lost beside others", "error", err, "restart", c.restarted, "max_restarts", c.config.MaxRestarts)
	if lost := env.Lost(err); lost != nil {
		for _, span := range lost {
			for env := max(span.First, 0); env < min(span.First+span.Count, s.n); env++ {
				s.loseOne(b, env, leaving)
			}
		}
		return nil
	}
	for env := range s.n {
		s.loseOne(b, env, leaving)
	}
	if err := b.env.Renew(); err != nil {
		return err
	}
	b.calls = 0
	err = b.env.Bind(b.pad.block(b.schema, s.firstBlock()))
	if env.Lost(err) != nil {
		return nil // all are reset anyway
	}
	return err
}

// loseOne is loseSide for one environment.
func (s *split) loseOne(b *batch, env int, leaving bool) {
	if s.sides.owner[env] == b {
		s.gone[env], s.anyGone = 1, true
		if leaving {
			s.assign(env, s.sides.target)
		}
	}
	if s.sides.owner[env] != b {
		b.want(env)
	}
}

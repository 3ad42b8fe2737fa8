package rollout

import (
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
)

// What a loss did to a row of one environment.
const (
	struck  = 1 << iota // the row has been dealt with
	lostRow             // its env step is lost: the running episode ends here, untold
	cutRow              // truncated by the host because the row behind it is lost
	endRow              // truncated by the host because other environments make the row behind it
)

// spend takes one restart from the budget; it reports false if there is none left.
func (c *Rollout) spend() bool {
	if c.restarted >= c.config.MaxRestarts {
		return false
	}
	c.restarted++
	c.attempts++
	c.restarts.Add(1)
	return true
}

// lose takes an error that says that some of the environments are lost: it costs them the step that they were in,
// and nobody else anything. It reports false for every other error, and when the budget is spent. Lost environments
// wait for revive.
func (s *split) lose(err error) bool {
	c, lost := s.c, env.Lost(err)
	if lost == nil || c.falls(s.batch, err) || s.next == nil && c.h.Yield(err) || !c.spend() {
		return false
	}
	s.version.faults.Inc()
	n := 0
	for _, span := range lost {
		for env := max(span.First, 0); env < min(span.First+span.Count, s.n); env++ {
			s.gone[env], s.anyGone = 1, true
			n++
		}
	}
	c.h.Log.Warn("environments lost", "error", err, "envs", n, "restart", c.restarted, "max_restarts", c.config.MaxRestarts)
	return true
}

// strike takes row t of the environments that are gone out of the block, unless their episode ended in it: it is
// then in no loss, no statistic, and no episode, and what comes before it is cut off with the value of the last
// observation that there is. stepped says whether the row had been written when they were lost. Row -1 is what
// happens before a block's first step.
func (s *split) strike(t int, stepped bool) {
	for env, gone := range s.gone {
		if gone == 0 {
			continue
		}
		s.ages[env], s.limited[env] = 0, 0
		s.reports.forget(env)
		phantom := s.phantom[env] != 0
		s.phantom[env] = 0
		if t < 0 {
			if s.accounts[env].Length > 0 {
				s.endUntold(&s.accounts[env])
			}
			continue
		}
		at := t*s.n + env
		if s.cuts[at] != 0 || stepped && s.hasEnded(at) {
			continue
		}
		s.anyCuts = true
		s.cuts[at] = struck
		s.blank(t, env)
		if !phantom {
			s.cuts[at] |= lostRow
			s.c.lostSteps.Inc()
			s.cutBefore(t, env)
		}
	}
}

// ends reports whether a row that has been written is the last one of an episode.
func (s *split) ends(at int) bool {
	return s.tr.Bytes(trajectory.Valid)[at] != 0 &&
		s.tr.Bytes(trajectory.Terminated)[at]|s.tr.Bytes(trajectory.Truncated)[at] != 0
}

// hasEnded reports whether a row that has been written has no step of an episode that goes on.
func (s *split) hasEnded(at int) bool {
	return s.tr.Bytes(trajectory.Valid)[at] == 0 ||
		s.tr.Bytes(trajectory.Terminated)[at]|s.tr.Bytes(trajectory.Truncated)[at] != 0
}

// blank makes a row of one environment one that belongs to no episode: nothing has happened in it.
func (s *split) blank(t, env int) {
	s.tr.Bytes(trajectory.Valid)[t*s.n+env] = 0
	s.tr.ClearOutcomeOf(env, t)
}

// cutBefore truncates an episode that was running before row t: obs[t] is its last observation, and value[t] has
// been asked for already. A block before this one takes its last value from its own last row.
func (s *split) cutBefore(t, env int) {
	before, at := (t-1)*s.n+env, t*s.n+env
	if t == 0 || s.hasEnded(before) {
		return
	}
	s.tr.Bytes(trajectory.Truncated)[before] = 1
	s.tr.Float32(trajectory.Bootstrap)[before] = s.tr.Float32(trajectory.Value)[at]
	s.tr.KeepFinal(env, t)
	s.cuts[before] |= cutRow
}

// revive starts new episodes in the environments that are gone, with seeds that they have not had, until all of
// them observe something in that row.
func (s *split) revive(row int) error {
	for s.anyGone {
		copy(s.resetMask, s.gone)
		s.foundAll()
		s.seed(s.c.attempts)
		if err := s.reset(row, s.resetMask, s.seeds); err != nil {
			return err
		}
	}
	if s.sides != nil {
		return s.fulfil(row)
	}
	return nil
}

// foundAll is for when nobody is gone any more.
func (s *split) foundAll() {
	clear(s.gone)
	s.anyGone = false
}

// endUntold forgets a running episode. It has not ended by itself, so its return says nothing of the policy.
func (s *split) endUntold(a *account) {
	s.c.lostEpisodes.Inc()
	*a = account{}
}

// forgetCuts prepares for a new block.
func (s *split) forgetCuts() {
	if s.anyCuts {
		clear(s.cuts)
		s.anyCuts = false
	}
}

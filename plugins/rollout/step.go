package rollout

import (
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// firstRow binds the block and writes what is observed in row 0.
func (s *split) firstRow() error {
	if err := s.bind(); err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.rows.invalidateRow(-1, false)
	}
	if s.carried {
		s.rows.tr.LoadObserved(0, s.carry)
		s.rows.c.carriedBytes.Add(uint64(len(s.carry)))
		return s.resetLost(0)
	}
	s.rows.foundAll() // the reset is for all
	s.rows.acting.beginAll(s.first, s.steps)
	if err := s.reset(0, nil, s.seeds.values); err != nil {
		return err
	}
	return s.resetLost(0)
}

// settle completes row t, in which the environments have written the rest and obs[t+1].
func (s *split) settle(err error) error {
	if s.versions != nil {
		if err := s.versions.settle(s.t); err != nil {
			return err
		}
		return s.nextTurns()
	}
	s.batch.learnRaw(s.rows.tr, s.t)
	if err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.rows.invalidateRow(s.t, false)
	}
	ended, env, err := s.rows.tr.CheckStep(s.t, s.rows.c.mode)
	if err != nil {
		return s.batch.outputFault(hostabi.ExportStep, env, err)
	}
	ended = s.rows.complete(s.t, ended)
	if err := s.nextTurns(); err != nil {
		return err
	}
	if ended != 0 && s.rows.c.mode != hostabi.SameStep {
		if err := s.endEpisodes(); err != nil {
			return err
		}
	}
	return s.resetLost(s.t + 1)
}

// nextTurns draws who plays the agents whose episodes have ended in row t from now on. It returns an error for an environment
// none of whose agents acts any more.
func (s *split) nextTurns() error {
	if s.rows.agents == nil {
		return nil
	}
	if s.rows.agents.AnyEnded {
		s.rows.acting.beginWhere(s.rows.agents.Ended, s.first, s.steps+uint64(s.t)+1)
	}
	env, err := s.rows.agents.Idle()
	if err == nil {
		return nil
	}
	return s.ownerOf(env).outputFault(hostabi.ExportStep, env, err)
}

// endEpisodes does what the ends of episodes in row t ask for where the environments do not reset themselves in the same step, as those
// with agents do.
func (s *split) endEpisodes() error {
	terminated, truncated := s.rows.tr.RowBytes(trajectory.Terminated, s.t), s.rows.tr.RowBytes(trajectory.Truncated, s.t)
	reset := false
	for env := range s.rows.c.envs() {
		reset = s.rows.endOne(s.t, env, terminated[env]|truncated[env] != 0) || reset
	}
	if !reset {
		return nil
	}
	return s.reset(s.t+1, s.rows.resetMask, nil)
}

// reset starts new episodes where mask is not 0, or everywhere, in a row of the block. Environments that are lost
// meanwhile wait for resetLost.
func (s *split) reset(row int, mask []uint8, seeds []uint64) error {
	if s.versions != nil {
		return s.versions.reset(row, mask, seeds)
	}
	if err := s.batch.env.Reset(row, mask, seeds); err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.rows.invalidateRow(row-1, true)
	}
	s.rows.tr.BeginWhere(row, mask)
	if s.rows.anyGone {
		return nil // resetLost looks at the row when it is complete
	}
	if env, err := s.rows.tr.CheckObs(row); err != nil {
		return s.batch.outputFault(hostabi.ExportReset, env, err)
	}
	return nil
}

// resetLost starts new episodes in the environments that are gone, with seeds that they have not had, until all of
// them observe something in that row.
func (s *split) resetLost(row int) error {
	if s.versions != nil {
		return s.versions.resetLost(row)
	}
	for s.rows.anyGone {
		mask := s.rows.goneMask()
		s.rows.foundAll()
		s.seeds.draw(s.rows.c.attempts)
		if err := s.reset(row, mask, s.seeds.values); err != nil {
			return err
		}
	}
	return nil
}

// loseSome takes an error that says that some of the environments are lost: it costs them the step that they were in,
// and the others nothing. It reports false for every other error, and when the budget is spent. Lost environments
// wait for resetLost.
func (s *split) loseSome(err error) bool {
	c, lost := s.rows.c, env.Lost(err)
	if lost == nil || c.wanted.Err() != nil || s.batch.onFault(err) || s.next == nil && c.h.Yield(err) || !c.spend() {
		return false
	}
	s.batch.version.faults.Inc()
	n := 0
	for _, span := range lost {
		for env := max(span.First, 0); env < min(span.First+span.Count, c.envs()); env++ {
			s.rows.loseEnv(env)
			n++
		}
	}
	c.h.Log.Warn("environments lost", "error", err, "envs", n, "restart", c.restarted, "max_restarts", c.config.MaxRestarts)
	return true
}

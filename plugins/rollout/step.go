package rollout

import (
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// stepper steps a split's environments: one batch alone, or several versions side by side.
type stepper interface {
	bind() error
	// step steps row t. While it is pending, the caller answers each call of ready with a call of arrive, until arrive reports that the
	// step is over. Then settle completes the row.
	step(t int, ready func()) (pending bool, err error)
	arrive() (over bool, err error)
	settle(t int, err error) error
	// reset starts new episodes where mask is not 0, or everywhere, in a row of the block. Environments that are lost meanwhile wait
	// for resetLost; see split.resetGone.
	reset(row int, mask []uint8, seeds []uint64) error
	resetLost(row int) error

	ownerOf(env int) *batch // whose rows of an environment count
	whole() *batch          // whose rows all count, or nil
	batches() []*batch      // the newest last
}

// stepper returns the split's present stepper.
func (s *split) stepper() stepper {
	if s.versions != nil {
		return s.versions
	}
	return alone{s}
}

// firstRow binds the block and writes the observation in row 0.
func (s *split) firstRow() error {
	if err := s.stepper().bind(); err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.rows.invalidateRow(-1, false)
	}
	if s.carried {
		s.rows.tr.LoadObserved(0, s.carry)
		s.rows.c.carriedBytes.Add(uint64(len(s.carry)))
		return s.stepper().resetLost(0)
	}
	s.rows.foundAll() // the reset is for all
	if s.rows.whole != nil {
		s.rows.forget()
		s.seeds.drawBlock(s.sequence)
	}
	s.rows.acting.beginAll(s.first, s.steps)
	if err := s.stepper().reset(0, nil, s.seeds.values); err != nil {
		return err
	}
	return s.stepper().resetLost(0)
}

// alone is a split whose one batch steps into the split's block.
type alone struct{ s *split }

func (a alone) ownerOf(int) *batch { return a.s.batch }

func (a alone) whole() *batch { return a.s.batch }

func (a alone) batches() []*batch { return []*batch{a.s.batch} }

// bind makes the environments step into the block.
func (a alone) bind() error {
	s := a.s
	err := s.batch.bind(s.batch.block(s.rows.tr.Mem, s.rows.block))
	if s.batch.pad != nil && err == nil {
		s.letGo(s.batch.pad) // that it was bound to before
		s.batch.pad = nil
	}
	return err
}

func (a alone) step(t int, ready func()) (pending bool, err error) {
	b := a.s.batch
	b.calls++
	a.s.rows.tr.Execute(t)
	if b.starter == nil {
		return false, b.step(t)
	}
	over, err := b.startStep(t, ready)
	b.stepping = !over
	return b.stepping, err
}

func (a alone) arrive() (over bool, err error) {
	a.s.batch.stepping = false
	return true, a.s.batch.finishStep()
}

// settle completes row t, where the environments have written the other columns and obs[t+1].
func (a alone) settle(t int, err error) error {
	s := a.s
	s.batch.learnRaw(s.rows.tr, t)
	if err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.rows.invalidateRow(t, false)
	}
	ended, env, err := s.rows.tr.CheckStep(t, s.rows.c.mode)
	if err != nil {
		return s.batch.outputFault(hostabi.ExportStep, env, err)
	}
	if env, err := s.rows.noteBegins(t); err != nil {
		return s.batch.outputFault(hostabi.ExportReset, env, err)
	}
	ended = s.rows.complete(t, ended)
	if err := s.nextTurns(); err != nil {
		return err
	}
	if ended != 0 && s.rows.c.mode != hostabi.SameStep {
		if err := a.endEpisodes(t); err != nil {
			return err
		}
	}
	return a.resetLost(t + 1)
}

// endEpisodes handles the ends of episodes in row t where the environments do not reset themselves in the same step, as environments
// with agents do.
func (a alone) endEpisodes(t int) error {
	s := a.s
	terminated, truncated := s.rows.tr.RowBytes(trajectory.Terminated, t), s.rows.tr.RowBytes(trajectory.Truncated, t)
	reset := false
	for env := range s.rows.c.envs() {
		reset = s.rows.endOne(t, env, terminated[env]|truncated[env] != 0) || reset
	}
	if !reset {
		return nil
	}
	return a.reset(t+1, s.rows.resetMask, nil)
}

func (a alone) reset(row int, mask []uint8, seeds []uint64) error {
	s := a.s
	if err := s.batch.reset(row, mask, seeds); err != nil {
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

func (a alone) resetLost(row int) error { return a.s.resetGone(row) }

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

// resetGone starts new episodes in the environments that are gone, with seeds that they have not had, until all of
// them observe something in that row.
func (s *split) resetGone(row int) error {
	for s.rows.anyGone {
		mask := s.rows.goneMask()
		s.rows.foundAll()
		s.seeds.draw(s.rows.c.attempts)
		if err := s.stepper().reset(row, mask, s.seeds.values); err != nil {
			return err
		}
	}
	return nil
}

// loseSome handles an error that says that some of the environments are lost: they lose their current step, and the
// others nothing. It reports false for any other error, and when the budget is spent. Lost environments wait for
// resetLost.
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
	c.h.Log.Warn("environments lost", "error", err, "envs", n, "restart", c.counted(), "max_restarts", c.config.MaxRestarts)
	return true
}

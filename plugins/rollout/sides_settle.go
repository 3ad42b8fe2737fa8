package rollout

import (
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// settleSides completes row t, which every batch has stepped; see settle.
func (s *split) settleSides() error {
	s.sides.row = s.t + 1
	s.gather()
	for _, b := range s.sides.all {
		if b.err == nil {
			continue
		}
		if err := s.loseSide(b, b.err); err != nil {
			return err
		}
		b.err = nil
	}
	s.strike(s.t, false)
	ended, err := s.checkSides()
	if err != nil {
		return err
	}
	s.markValid()
	if s.c.config.EpisodeLimit > 0 {
		ended = s.limit(ended)
	}
	s.endReports()
	s.bootstrap = ended&trajectory.AnyTruncated != 0
	if err := s.endSides(); err != nil {
		return err
	}
	return s.revive(s.t + 1)
}

// checkSides looks at what stands in row t. Who wrote what is not allowed has lost the step of all its environments.
func (s *split) checkSides() (trajectory.Ended, error) {
	for {
		ended, env, err := s.tr.CheckStep(s.t, s.c.mode)
		if err == nil {
			return ended, nil
		}
		if err = s.outputFault(hostabi.ExportStep, env, err); env < 0 {
			return 0, err
		}
		if err := s.loseSide(s.sides.owner[env], err); err != nil {
			return 0, err
		}
		s.strike(s.t, false)
	}
}

// endSides is endEpisodes for batches side by side: environments whose episode has ended in row t go over.
func (s *split) endSides() error {
	d, t := s.sides, s.t
	terminated, truncated := s.tr.Row(trajectory.Terminated, t).Data, s.tr.Row(trajectory.Truncated, t).Data
	valid := s.tr.Row(trajectory.Valid, t).Data
	reset, over := false, false
	for env := range s.n {
		ended, limited := terminated[env]|truncated[env] != 0, s.limited[env] != 0
		s.limited[env], s.resetMask[env], d.over[env] = 0, 0, 0
		if ended && (limited || s.c.mode != hostabi.SameStep) {
			s.tr.KeepFinal(env, t+1)
		}
		goes := d.target != nil && env < d.share && d.owner[env] != d.target
		switch {
		case goes && (ended || valid[env] == 0):
			if s.gone[env] == 0 {
				d.over[env], over = 1, true
			} else {
				d.owner[env].want(env) // it is lost there, too
			}
			s.assign(env, d.target)
			s.phantom[env] = 0
		case !ended:
		case limited || s.c.mode == hostabi.Disabled:
			s.resetMask[env], reset = 1, true
		case s.c.mode == hostabi.NextStep:
			s.phantom[env] = 1
		}
	}
	s.wantEnded()
	if over {
		s.next.x.newSeeds()
		s.seed(s.c.attempts)
		if err := s.resetOwn(d.target, t+1, d.over, s.seeds); err != nil {
			return err
		}
	}
	if !reset {
		return nil
	}
	return s.reset(t+1, s.resetMask, nil)
}

// wantEnded asks for resets where the guest does none itself and nobody looks.
func (s *split) wantEnded() {
	if s.c.mode != hostabi.Disabled {
		return
	}
	for _, b := range s.sides.all {
		terminated, truncated := b.pad.tr.Row(trajectory.Terminated, s.t).Data, b.pad.tr.Row(trajectory.Truncated, s.t).Data
		for env, owner := range s.sides.owner {
			if owner != b && terminated[env]|truncated[env] != 0 {
				b.want(env)
			}
		}
	}
}

// assign makes another batch's rows of an environment count.
func (s *split) assign(env int, to *batch) {
	if s.writing {
		s.stamp(env, s.sides.row)
	}
	s.sides.owner[env] = to
}

// resetSides is reset for batches side by side: each environment is reset where it counts.
func (s *split) resetSides(row int, mask []uint8, seeds []uint64) error {
	for _, b := range s.sides.all {
		any := false
		for env, owner := range s.sides.owner {
			b.mask[env] = 0
			if owner == b && (mask == nil || mask[env] != 0) {
				b.mask[env], any = 1, true
			}
		}
		if !any {
			continue
		}
		if err := s.resetOwn(b, row, b.mask, seeds); err != nil {
			return err
		}
	}
	return nil
}

// resetOwn resets environments that count, and takes what they observe.
func (s *split) resetOwn(b *batch, row int, mask []uint8, seeds []uint64) error {
	err := b.env.Reset(row, mask, seeds)
	if err == nil || env.Lost(err) != nil { // the others have been reset
		for env, m := range mask {
			if m != 0 && s.sides.owner[env] == b {
				s.gatherObs(row, env)
			}
		}
	}
	if err == nil {
		env, bad := s.tr.CheckObs(row)
		if bad == nil || s.anyGone { // revive looks at the row when it is complete
			return nil
		}
		if err = s.outputFault(hostabi.ExportReset, env, bad); env < 0 {
			return err
		}
		b = s.sides.owner[env]
	}
	if err := s.loseSide(b, err); err != nil {
		return err
	}
	s.strike(row-1, true)
	return nil
}

// fulfil makes the resets that batches want for environments that nobody looks at.
func (s *split) fulfil(row int) error {
	for _, b := range s.sides.all {
		for b.wanting {
			copy(b.mask, b.wants)
			b.forgetWants()
			err := b.env.Reset(row, b.mask, s.seeds)
			if err == nil {
				break
			}
			if err := s.loseSide(b, err); err != nil {
				return err
			}
			s.strike(row-1, true)
		}
	}
	if s.anyGone {
		return s.revive(row)
	}
	return nil
}

package rollout

import (
	"slices"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
)

// sides is what a split needs to step environments of several versions side by side: each batch steps all of its
// environments, in a block of its own, and the split's block gets the rows of those that count.
type sides struct {
	all    []*batch // the newest last
	owner  []*batch // by environment, the one that counts
	target *batch   // where environments go over to when their episodes end; nil: nowhere
	share  int      // how many of them go, the first ones
	row    int      // the first one that a new owner makes
	waits  int      // batches that have not called ready

	over []uint8 // 1 where the environment has gone over in this row
}

func (d *sides) has(b *batch) bool { return slices.Contains(d.all, b) }

// ownerOf returns the batch whose rows of an environment count.
func (s *split) ownerOf(env int) *batch {
	if s.sides == nil {
		return s.batch
	}
	return s.sides.owner[env]
}

// newest returns the batch of the newest version.
func (s *split) newest() *batch {
	if s.sides == nil {
		return s.batch
	}
	return s.sides.all[len(s.sides.all)-1]
}

// standBeside lets the environments of the pending move step beside those that run, from row t on. Each goes over when
// its episode ends, at once where none is running. The last row stands for the first one of the next block. It reports
// whether the split goes on.
func (s *split) standBeside(t int) bool {
	m := s.next
	m.arrive()
	d := s.sides
	var err error
	if d == nil {
		d = &sides{all: []*batch{s.batch}, owner: make([]*batch, s.n), over: make([]uint8, s.n)}
		for env := range d.owner {
			d.owner[env] = s.batch
		}
		s.pad, m.pad = m.pad, nil
		if err = s.env.Bind(s.pad.block(s.schema, s.firstBlock())); err != nil && !isFault(err) {
			return s.stayAlone(err)
		}
		s.sides = d
	}
	d.all = append(d.all, m.to)
	d.target, d.share, d.row = m.to, m.share, t
	m.to.quiet.Store(false)
	m.to.copyMask(0, t)
	if !s.carried && !s.writing {
		d.beginAll()
	}
	if err != nil {
		err = s.loseSide(d.all[0], err)
		s.strike(s.rowBefore(), true)
	}
	if err == nil && s.writing && s.anyGone {
		err = s.revive(t)
	}
	m.pass()
	if err != nil {
		s.fault(err)
	}
	return err == nil
}

// stayAlone is for environments that cannot step beside others: they go on as before.
func (s *split) stayAlone(err error) bool {
	s.c.fall(err)
	if !s.writing {
		s.c.changes.release(s.pad)
		s.pad = nil
		return true
	}
	if err := s.bind(s.loan.Block()); err != nil {
		s.fault(err)
		return false
	}
	return true
}

// beginAll lets environments go over that have no episode yet.
func (d *sides) beginAll() {
	for env := range d.share {
		d.owner[env] = d.target
	}
	for _, b := range d.all {
		for env, owner := range d.owner {
			if owner != b {
				b.want(env)
			}
		}
	}
}

// firstBlock is the index of the split's first block.
func (s *split) firstBlock() uint32 { return uint32(s.index * s.c.blocksPerSplit()) }

// rowBefore is the last row that has been stepped, -1 if none is.
func (s *split) rowBefore() int {
	if !s.writing {
		return -1
	}
	return s.t - 1
}

// copyMask copies a row of masks within the batch's own block.
func (b *batch) copyMask(from, to int) {
	if _, masked := b.schema.Layout(rollout.ColMask); masked && from != to {
		copy(b.pad.tr.Row(rollout.ColMask, to).Data, b.pad.tr.Row(rollout.ColMask, from).Data)
	}
}

// turn makes the last row the first one.
func (d *sides) turn() {
	d.row = 0
	for _, b := range d.all {
		b.copyMask(b.schema.Shape.Steps, 0)
	}
}

// stepSides steps every batch with the actions of row t.
func (s *split) stepSides() {
	d := s.sides
	d.waits, s.arrived = 0, 0
	for _, b := range d.all {
		b.calls++
		s.giveActions(b)
		if b.starter == nil {
			continue
		}
		over, err := b.starter.StartStep(s.t, s.ready)
		if b.err, b.stepping = err, !over; !over {
			d.waits++
		}
	}
	for _, b := range d.all {
		if b.starter == nil {
			b.err = b.env.Step(s.t)
		}
	}
	if s.stepping = d.waits > 0; !s.stepping {
		s.stepped(nil)
	}
}

// arrivedSide goes on when all batches have stepped.
func (s *split) arrivedSide() {
	d := s.sides
	if s.arrived++; s.arrived < d.waits {
		return
	}
	for _, b := range d.all {
		if b.stepping {
			b.stepping = false
			b.err = b.starter.FinishStep()
		}
	}
	s.stepping = false
	s.stepped(nil)
}

// giveActions copies the actions of row t. An environment that another one stands for gets the same one, or a legal
// one where masks say which those are: it may be at another place.
func (s *split) giveActions(b *batch) {
	to := b.pad.tr.Row(rollout.ColAction, s.t)
	copy(to.Data, s.tr.Row(rollout.ColAction, s.t).Data)
	if s.carryMask == nil {
		return
	}
	mask, action := b.pad.tr.Row(rollout.ColMask, s.t), b.pad.tr.Int32(rollout.ColAction)[s.t*s.n:]
	for env := range s.n {
		if s.sides.owner[env] != b {
			action[env] = firstLegal(mask, env)
		}
	}
}

func firstLegal(mask rollout.Matrix, env int) int32 {
	for a := range mask.Elems {
		if mask.Data[env*mask.StrideRow+a*mask.StrideElem] != 0 {
			return int32(a)
		}
	}
	return 0
}

// gather copies what the step of row t has written for the environments that count into the split's block.
func (s *split) gather() {
	t := s.t
	for _, c := range []rollout.Column{rollout.ColReward, rollout.ColTerminated, rollout.ColTruncated} {
		to := s.tr.Row(c, t)
		for env, b := range s.sides.owner {
			to.CopyRow(env, b.pad.tr.Row(c, t))
		}
	}
	ended := func(env int) bool {
		return s.tr.Bytes(rollout.ColTerminated)[t*s.n+env]|s.tr.Bytes(rollout.ColTruncated)[t*s.n+env] != 0
	}
	final := s.tr.Row(rollout.ColFinalObs, 0)
	for env, b := range s.sides.owner {
		s.gatherObs(t+1, env)
		if ended(env) {
			final.CopyRow(env, b.pad.tr.Row(rollout.ColFinalObs, 0))
		}
	}
}

// gatherObs copies what one environment observes in a row.
func (s *split) gatherObs(row, env int) {
	from := s.sides.owner[env].pad
	s.tr.Row(rollout.ColObs, row).CopyRow(env, from.tr.Row(rollout.ColObs, row))
	if s.carryMask != nil {
		s.tr.Row(rollout.ColMask, row).CopyRow(env, from.tr.Row(rollout.ColMask, row))
	}
}

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
	s.bootstrap = ended&rollout.AnyTruncated != 0
	if err := s.endSides(); err != nil {
		return err
	}
	return s.revive(s.t + 1)
}

// checkSides looks at what stands in row t. Who wrote what is not allowed has lost the step of all its environments.
func (s *split) checkSides() (rollout.Ended, error) {
	for {
		ended, env, err := s.tr.CheckStep(s.t)
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
	terminated, truncated := s.tr.Row(rollout.ColTerminated, t).Data, s.tr.Row(rollout.ColTruncated, t).Data
	valid := s.tr.Row(rollout.ColValid, t).Data
	reset, over := false, false
	for env := range s.n {
		ended, limited := terminated[env]|truncated[env] != 0, s.limited[env] != 0
		s.limited[env], s.resetMask[env], d.over[env] = 0, 0, 0
		if ended && (limited || s.c.mode != hostabi.SameStep) {
			s.keepFinal(env)
		}
		goes := d.target != nil && env < d.share && d.owner[env] != d.target
		switch {
		case goes && (ended || valid[env] == 0):
			s.assign(env, d.target)
			s.phantom[env] = 0
			if s.gone[env] == 0 {
				d.over[env], over = 1, true
			}
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
		terminated, truncated := b.pad.tr.Row(rollout.ColTerminated, s.t).Data, b.pad.tr.Row(rollout.ColTruncated, s.t).Data
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
	if err == nil {
		for env, m := range mask {
			if m != 0 && s.sides.owner[env] == b {
				s.gatherObs(row, env)
			}
		}
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

// loseSide takes an error of one batch: it costs its environments the step that they were in, and those of others
// nothing. They wait for revive. What cannot be borne it returns.
func (s *split) loseSide(b *batch, err error) error {
	c, d := s.c, s.sides
	if isFault(err) {
		b.version.faults.Inc()
	}
	if b.tried {
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
	if lost := rollout.Lost(err); lost != nil {
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
	return b.env.Bind(b.pad.block(b.schema, s.firstBlock()))
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

// goneOver is for the split whose environments may all have gone over: then the new ones step into its block. It
// reports whether the split goes on.
func (s *split) goneOver() bool {
	d, m := s.sides, s.next
	for env := range d.share {
		if d.owner[env] != d.target {
			return true
		}
	}
	m.arrive()
	d.target = nil
	var err error
	if d.share == s.n {
		s.goOver()
		if err = s.enter(); err != nil {
			s.fault(err)
		}
	}
	s.crossed(m)
	return err == nil
}

package rollout

import "slices"

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
	m.to.reportsTo.Store(s)
	m.to.copyRow(0, t)
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

// copyRow copies what is observed in a row within the batch's own block.
func (b *batch) copyRow(from, to int) { b.pad.tr.CopyObserved(to, b.pad.tr, from) }

// turn makes the last row the first one.
func (d *sides) turn() {
	d.row = 0
	for _, b := range d.all {
		b.copyRow(b.schema.Shape.Steps, 0)
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

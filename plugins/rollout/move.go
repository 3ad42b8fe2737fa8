package rollout

import (
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/component"
)

// move is one split's part of a change: where it goes, or goes back to, at its next boundary. See stage for the whole.
type move struct {
	s         *split
	to        *batch
	at        component.Boundary
	keepState bool // the running episodes continue, if that can be done
	share     int  // environments that go over
	back      bool
	pad       *pad // for the old environments, if they continue next to the new ones

	newSeeds func()      // for environments that begin again
	rollBack func(error) // the change cannot be made here
	over     func(*move) // the split has gone over, or back

	progress progress
	episodes passage
	went     component.EnvsWent
	since    time.Time
	took     time.Duration
	rest     []closer // is to be closed when stepping resumes
}

// progress says how far a move has got.
type progress uint8

const (
	waiting progress = iota // for the boundary; at AtEpisode versions step side by side until all episodes have ended
	inPlace                 // the new environments are in their place: they have yet to begin
	done                    // over, or given up
)

// passage says what happens to the running episodes at the boundary.
type passage uint8

const (
	someGoOn passage = iota // episodes of environments that have gone over already
	allKept
	noneBegan // and the seeds have not been used
	allEnded
)

// startClock starts the clock of the pause at a boundary, stopClock stops it.
func (m *move) startClock() { m.since = time.Now() }

func (m *move) stopClock() { m.took += time.Since(m.since) }

// later postpones a close until stepping resumes; it reports false if stepping is not paused.
func (m *move) later(c closer) bool {
	if m.progress == inPlace {
		m.rest = append(m.rest, c)
	}
	return m.progress == inPlace
}

// start lets a split go over that is at its boundary already, because it has no block under way. A row that waits for
// actions does not change.
func (m *move) start() {
	switch s := m.s; {
	case !s.rows.writing && m.at == component.AtEpisode && (s.carried || m.share < s.rows.c.envs()):
		m.stepBoth(s.rows.c.config.Horizon)
	case !s.rows.writing:
		m.startClock()
		m.leave(0, false)
		m.goOver()
		m.finish()
	}
}

// crossBlock goes over after the last row of the block.
func (m *move) crossBlock() {
	m.startClock()
	m.leave(m.s.t, true)
	if m.s.commit() {
		m.changeOver()
	}
}

// crossFault goes over, or back, in the place of environments that have failed.
func (m *move) crossFault(err error) {
	s := m.s
	m.startClock()
	s.tellLost(err)
	m.episodes = allEnded
	m.newSeeds()
	if !m.back {
		_ = s.renew() // the failed environments may have to come back, though they are not needed now
	}
	s.dropBlock()
	m.changeOver()
}

// changeOver goes over between two blocks.
func (m *move) changeOver() {
	m.goOver()
	m.s.begin()
	m.finish()
	m.s.endPause()
}

// crossRow goes over between two steps if this is the boundary. It reports whether row t is still to be asked about.
func (m *move) crossRow() bool {
	switch m.at {
	case component.AtNow:
		m.drop()
		return false
	case component.AtStep:
		m.crossStep()
		return false
	case component.AtEpisode:
		if d := m.s.versions; d == nil || d.target != m.to {
			return m.stepBoth(m.s.t)
		}
		return m.allOver()
	}
	return true
}

// crossStep goes over before row t, and asks about that row.
func (m *move) crossStep() {
	s := m.s
	m.startClock()
	s.stampRows(s.t, m.to)
	m.leave(s.t, false)
	m.goOver()
	if err := m.enter(); err != nil {
		s.fault(err)
	} else {
		s.ask()
	}
	m.finish()
}

// enter binds a partly written block to environments that have just come.
func (m *move) enter() error {
	s := m.s
	if err := s.stepper().bind(); err != nil {
		if !s.loseSome(err) {
			return err
		}
		s.rows.invalidateRow(s.t-1, true)
	}
	return s.stepper().resetLost(s.t)
}

// drop gives the unfinished block up and goes over.
func (m *move) drop() {
	s := m.s
	m.startClock()
	m.went.Dropped = uint64(s.rows.validBefore(s.t))
	s.rows.c.swap.dropped.Add(m.went.Dropped)
	m.leave(s.t, false)
	if m.episodes == allKept {
		s.rows.countDropped(s.t)
		s.keepRow(s.t)
	} else {
		clear(s.rows.accounts)
	}
	s.steps += uint64(s.t)
	s.abort()
	m.changeOver()
}

// stepBoth lets the environments of the move step next to the running ones, from row t on. Each goes over when its
// episode ends, at once where none is running. The last row counts as the first row of the next block. It reports
// whether the split continues.
func (m *move) stepBoth(t int) bool {
	s := m.s
	m.startClock()
	var err error
	if s.versions == nil {
		s.batch.pad, m.pad = m.pad, nil
		if err = s.batch.bindPad(); err != nil && !isFault(err) {
			return m.stayAlone(err)
		}
		switch pad := s.batch.pad.tr; {
		case s.rows.writing:
			pad.CopyObserved(t, s.rows.tr, t)
		case s.carried:
			pad.LoadObserved(t, s.carry)
		}
		s.versions = newVersions(s)
	}
	d := s.versions
	m.to.inherit(s.ownerOf)
	d.add(m.to, m.share, t, m.newSeeds)
	m.to.reportsTo.Store(&s.reporter)
	if !s.carried && !s.rows.writing {
		d.beginAll()
	}
	if err != nil {
		err = d.loseBatch(s.batch, err)
		before := -1 // no row has been stepped
		if s.rows.writing {
			before = s.t - 1
		}
		s.rows.invalidateRow(before, true)
	}
	if err == nil && s.rows.writing && s.rows.anyGone {
		err = s.stepper().resetLost(t)
	}
	m.stopClock()
	if err != nil {
		s.fault(err)
	}
	return err == nil
}

// stayAlone is for environments that cannot step next to others: they continue as before.
func (m *move) stayAlone(err error) bool {
	s := m.s
	m.rollBack(err)
	if !s.rows.writing {
		s.rows.c.closing.release(s.batch.pad)
		s.batch.pad = nil
		return true
	}
	if err := s.stepper().bind(); err != nil {
		s.fault(err)
		return false
	}
	return true
}

// allOver is for the split whose environments may all have gone over: then the new ones step into its block. It
// reports whether the split continues.
func (m *move) allOver() bool {
	s := m.s
	if !s.versions.allOver() {
		return true
	}
	m.startClock()
	s.versions.target = nil
	var err error
	if m.share == s.rows.c.envs() {
		m.goOver()
		if err = m.enter(); err != nil {
			s.fault(err)
		}
	}
	m.finish()
	return err == nil
}

// leave carries the running episodes over to the new environments, or ends them before row t as truncated. Episodes of
// environments that stay are not touched. Row 0 is for a split whose last block is gone: the block has its bootstrap
// value already. valued says that value[t] is there.
func (m *move) leave(t int, valued bool) {
	s := m.s
	m.episodes = noneBegan
	if s.carried || s.rows.writing {
		m.episodes = allEnded
	}
	ended := s.rows.whole != nil && (valued || m.at == component.AtNow) // blocks of whole episodes begin with resets
	if m.keepState && (t > 0 || s.carried) && !ended && m.takeStates() {
		m.episodes = allKept
		s.rows.c.swap.kept.Add(uint64(s.rows.n))
		m.went.Kept = s.rows.n
		return
	}
	m.newSeeds()
	for env := range s.rows.c.envs() {
		end := byte(1)
		if s.ownerOf(env) == m.to {
			end, m.episodes = 0, someGoOn
		}
		for row, last := s.rows.c.schema.RowsOf(env); row < last; row++ {
			s.rows.leaving[row] = end
		}
	}
	m.went.Truncated += s.rows.endWhere(s.rows.leaving, t, valued)
	s.rows.c.swap.ended.Add(uint64(m.went.Truncated))
}

// takeStates reports whether the running episodes continue in the new environments.
func (m *move) takeStates() bool {
	err := m.to.takeStates(m.s.stepper().whole(), m.s.ownerOf)
	if err != nil {
		m.s.rows.c.h.Log.Warn("episodes are not carried over", "split", m.s.index, "reason", err)
	}
	return err == nil
}

// goOver puts the new environments in the place of the old ones, which wait until the change is settled.
func (m *move) goOver() {
	s := m.s
	m.progress = inPlace
	s.record() // the blocks that the old environments step into may be gone soon
	was := s.batch
	if beside := slices.Contains(s.stepper().batches(), m.to); m.episodes != allKept && !m.back && !beside {
		m.to.inherit(s.ownerOf)
	}
	for _, b := range s.batches() {
		switch {
		case b == m.to:
		case !m.back && (b == s.spare || b == was && s.spare == nil):
			s.spare = b
		default:
			s.letGo(b)
		}
	}
	if m.back {
		s.spare = nil
	}
	s.batch, s.versions = m.to, nil
	s.batch.forgetWants()
	s.batch.reportsTo.Store(&s.reporter)
	if m.episodes == noneBegan || m.episodes == allEnded {
		s.carried = false
		if m.episodes == allEnded {
			s.seeds.draw(s.rows.c.attempts)
		}
		if !s.rows.writing {
			s.rows.foundAll() // the reset is for all
		}
	}
}

// finish ends the move of a split that has gone over, when its next row or block is under way.
func (m *move) finish() {
	s := m.s
	if s.next == m {
		s.next = nil
	}
	m.stopClock()
	for _, c := range m.rest {
		s.rows.c.closing.release(c)
	}
	m.rest = nil
	if m.progress != done {
		m.giveUp()
		m.over(m)
	}
}

// giveUp ends a move that is made, or is not to be made.
func (m *move) giveUp() {
	m.progress = done
	if m.pad != nil {
		m.s.rows.c.closing.release(m.pad)
		m.pad = nil
	}
}

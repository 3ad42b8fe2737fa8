package rollout

import (
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
)

// move is where a split goes, or goes back to, at its next boundary.
type move struct {
	x     *change
	to    *batch
	at    component.Boundary
	keep  bool // running episodes, if that can be done
	share int  // environments that go over
	back  bool
	pad   *pad // for those that are there now, if they go on beside the new ones

	begun bool // there were episodes
	kept  bool // running episodes go on
	fresh bool // no episode goes on
	gone  bool // over: what is left is to begin
	void  bool // given up meanwhile
	since time.Time
	took  time.Duration
	rest  []interface{ close() error } // is to be closed when stepping goes on
}

// arrive starts the clock of the pause at a boundary, pass stops it.
func (m *move) arrive() { m.since = time.Now() }

func (m *move) pass() { m.took += time.Since(m.since) }

// look lets a split go over that is at its boundary already, since nothing of it is under way. A row that has been asked
// about stays as it is.
func (s *split) look() {
	m := s.next
	switch {
	case !s.writing && m.at == component.AtEpisode && (s.carried || m.share < s.n):
		s.standBeside(s.c.config.Horizon)
	case !s.writing:
		m.arrive()
		s.leave(0, false)
		s.goOver()
		s.crossed(m)
	}
}

// crossRow goes over between two steps if this is the boundary. It reports whether row t is still to be asked about.
func (s *split) crossRow() bool {
	m := s.next
	switch m.at {
	case component.AtNow:
		s.drop()
		return false
	case component.AtStep:
		s.crossStep()
		return false
	case component.AtEpisode:
		if s.sides == nil || s.sides.target != m.to {
			return s.standBeside(s.t)
		}
		return s.goneOver()
	}
	return true
}

// crossStep goes over before row t, and asks about that row.
func (s *split) crossStep() {
	m := s.next
	m.arrive()
	for env := range s.n {
		if s.ownerOf(env) != m.to {
			s.stamp(env, s.t)
		}
	}
	s.leave(s.t, false)
	s.goOver()
	if err := s.enter(); err != nil {
		s.fault(err)
	} else {
		s.ask()
	}
	s.crossed(m)
}

// enter binds the block of which rows have been written to environments that have just come.
func (s *split) enter() error {
	if err := s.bind(s.loan.Block()); err != nil {
		if !s.lose(err) {
			return err
		}
		s.strike(s.t-1, true)
	}
	return s.revive(s.t)
}

// drop gives the unfinished block up and goes over.
func (s *split) drop() {
	m := s.next
	m.arrive()
	dropped := uint64(s.lost())
	s.c.changes.dropped.Add(dropped)
	if !m.back {
		m.x.went.Dropped += dropped
	}
	s.leave(s.t, false)
	if m.kept {
		s.accountDropped(s.t)
		s.keepRow(s.t)
	} else {
		clear(s.accounts)
	}
	s.steps += uint64(s.t)
	s.abort()
	s.goOver()
	s.begin()
	s.crossed(m)
	s.c.rests()
}

// leave carries the running episodes over to the environments of the pending move, or ends them before row t as
// truncated; those of environments that stay are not touched. Row 0 is for a split whose last block is gone: the value
// of what follows stands in it already. valued says that value[t] is there.
func (s *split) leave(t int, valued bool) {
	m := s.next
	m.begun = s.carried || s.writing
	if m.keep && (t > 0 || s.carried) && s.carryState(m.to) {
		m.kept = true
		s.c.changes.kept.Add(uint64(s.n))
		m.x.went.Kept += s.n
		return
	}
	ended := 0
	m.fresh = true
	m.x.newSeeds()
	for env := range s.n {
		if s.ownerOf(env) == m.to {
			m.fresh = false
			continue
		}
		if s.endEpisode(t, env, valued) {
			ended++
		}
		s.phantom[env], s.ages[env], s.limited[env] = 0, 0, 0
		s.reports.forget(env)
		s.gone[env], s.anyGone = 1, true // until it is reset
	}
	s.c.changes.ended.Add(uint64(ended))
	if !m.back {
		m.x.went.Truncated += ended
	}
}

// endEpisode truncates the episode of one environment before row t, if one is running, and reports whether one was.
// obs[t] is its last observation.
func (s *split) endEpisode(t, env int, valued bool) bool {
	if t == 0 {
		running := s.accounts[env].Length > 0
		s.accounts[env] = account{}
		return running
	}
	before, at := (t-1)*s.n+env, t*s.n+env
	if s.hasEnded(before) {
		return false
	}
	s.tr.Bytes(trajectory.Truncated)[before] = 1
	s.tr.KeepFinal(env, t)
	s.cuts[before] |= endRow
	s.anyCuts = true
	if valued {
		s.tr.Float32(trajectory.Bootstrap)[before] = s.tr.Float32(trajectory.Value)[at]
	} else {
		s.bootstrap = true
	}
	return true
}

// goOver puts the environments of the pending move into the place of those that have stepped so far, which wait until
// the change is settled.
func (s *split) goOver() {
	m := s.next
	m.gone = true
	was := s.batch
	for _, b := range s.batches() {
		switch {
		case b == m.to:
		case b == was && !m.back && s.spare == nil, b == s.spare && !m.back:
			s.spare = b
		default:
			s.letGo(b)
		}
	}
	if m.back {
		s.spare = nil
	}
	s.batch, s.sides = m.to, nil
	s.forgetWants()
	s.reportsTo.Store(s)
	if m.fresh {
		s.carried = false
		if m.begun { // else the seeds have not been used
			s.seed(s.c.attempts)
		}
		if !s.writing {
			s.foundAll() // the reset is for all
		}
	}
}

// letGo releases what the split needs no more, but not before stepping goes on: while memory is given back nobody can
// map any, or touch some for the first time.
func (s *split) letGo(c interface{ close() error }) {
	if m := s.next; m != nil && m.gone {
		m.rest = append(m.rest, c)
		return
	}
	s.c.changes.release(c)
}

// crossed is for the split that has gone over, when what comes next is under way.
func (s *split) crossed(m *move) {
	if s.next == m {
		s.next = nil
	}
	if !m.void {
		m.pass()
	}
	for _, c := range m.rest {
		s.c.changes.release(c)
	}
	m.rest = nil
	if m.void {
		return
	}
	m.void = true
	if m.pad != nil {
		s.c.changes.release(m.pad)
		m.pad = nil
	}
	m.x.splitOver(m)
}

// batches returns all that the split has.
func (s *split) batches() []*batch {
	list := []*batch{s.batch}
	add := func(b *batch) {
		for _, have := range list {
			if b == nil || b == have {
				return
			}
		}
		list = append(list, b)
	}
	if s.sides != nil {
		for _, b := range s.sides.all {
			add(b)
		}
	}
	add(s.spare)
	if s.next != nil {
		add(s.next.to)
	}
	return list
}

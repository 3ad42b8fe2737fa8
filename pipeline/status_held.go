package pipeline

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// holdTime is how long a process may hold a trajectory before status tells of it.
const holdTime = 30 * time.Second

// held is which trajectories somebody holds, and since when: it has been seen to for so long.
type held struct {
	arena string // of the oldest
	since map[hostabi.Handle]time.Time
}

// look notes what is held now. each calls its argument with every block that is.
func (x *held) look(now time.Time, each func(fn func(a *arena.Arena, h hostabi.Handle))) {
	before := x.since
	*x = held{}
	var oldest time.Time
	each(func(a *arena.Arena, h hostabi.Handle) {
		since, known := before[h]
		if !known {
			since = now
		}
		if x.since == nil {
			x.since = map[hostabi.Handle]time.Time{}
		}
		if x.since[h] = since; oldest.IsZero() || since.Before(oldest) {
			oldest, x.arena = since, a.Name()
		}
	})
}

// age returns for how long the oldest has been held.
func (x *held) age(now time.Time) (oldest time.Duration) {
	for _, since := range x.since {
		oldest = max(oldest, now.Sub(since))
	}
	return oldest
}

// text tells it for people.
func (x *held) text(now time.Time) string {
	s := ""
	if len(x.since) > 1 {
		s = "s"
	}
	return fmt.Sprintf("%d block%s of %s, the oldest for %s", len(x.since), s, x.arena, seconds(x.age(now)))
}

// trajectories calls fn with every arena of trajectories.
func (p *Pipeline) trajectories(fn func(a *arena.Arena)) {
	p.arenas.Each(func(a *arena.Arena) {
		if _, ok := a.Schema().(*trajectory.Schema); ok {
			fn(a)
		}
	})
}

// heldBy returns the blocks of trajectories that a process has claims on; see arena.HeldBy.
func (p *Pipeline) heldBy(holder int) func(fn func(a *arena.Arena, h hostabi.Handle)) {
	return func(fn func(a *arena.Arena, h hostabi.Handle)) {
		p.trajectories(func(a *arena.Arena) { a.HeldBy(holder, func(h hostabi.Handle) { fn(a, h) }) })
	}
}

// holder names what has held trajectories for longest: an instance in a process, or this process, whose components
// cannot be told apart.
func (s *sight) holder() (x *seen, text string) {
	var longest time.Duration
	for _, y := range s.seats {
		if age := y.held.age(s.at); age > max(longest, stallTime) {
			x, longest, text = y, age, y.held.text(s.at)
		}
	}
	if x == nil && s.own.age(s.at) > stallTime {
		text = s.own.text(s.at)
	}
	return x, text
}

// heldNote says what an instance has held for long, or nothing.
func (s *sight) heldNote(x *seen) string {
	if x.state != control.Stalled && x.held.age(s.at) <= holdTime || len(x.held.since) == 0 {
		return ""
	}
	return "holds " + x.held.text(s.at)
}

// findHolder finds, where nothing goes on and no message waits for anybody, the instance that keeps what it was given: it
// is stalled.
func (s *sight) findHolder() {
	if s.over != "" || !s.p.ending.started.Load() || !s.stands() {
		return
	}
	for _, x := range s.seats {
		if x.stalled > 0 || x.state != control.Running || len(x.out) > 0 {
			return // that is the cause
		}
	}
	if x, _ := s.holder(); x != nil {
		x.state = control.Stalled
	}
}

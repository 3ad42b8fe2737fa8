package pipeline

import (
	"sync"
	"time"
)

// stillness is when a run stood still, as far as it has been seen.
type stillness struct {
	mu      sync.Mutex
	cause   string        // why it has stalled; empty if it has not
	since   time.Time     // when it began to
	excused bool          // a change was made meanwhile
	longest time.Duration // for which it did, and then continued by itself
}

// slowTimes is how many times as long as its longest pause so far a run must stand still to count as stalled: a run with slow environments
// stands still now and then and continues by itself.
const slowTimes = 3

// note records the cause, and returns the previous one.
func (s *stillness) note(now time.Time, cause string) (before string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.cause = s.cause, cause
	switch {
	case cause != "" && before == "":
		s.since, s.excused = now, false
	case cause == "" && before != "" && !s.excused:
		s.longest = max(s.longest, now.Sub(s.since))
	}
	return before
}

// excuse notes that a change was made: it may be why the run continues.
func (s *stillness) excuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.excused = true
}

// stalled returns why the run stands still, if it does for longer than usual.
func (s *stillness) stalled(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != "" && now.Sub(s.since) < slowTimes*s.longest {
		return ""
	}
	return s.cause
}

// Stalled returns why the run stands still, if neither a pause nor a long dataset is the reason and the run never stood still for as long
// and continued by itself; else "". Any goroutine.
func (p *Pipeline) Stalled() string { return p.still.stalled(time.Now()) }

// Done returns how much each component has done so far, in env steps or messages, by its name. Any goroutine.
func (p *Pipeline) Done() map[string]uint64 {
	done := map[string]uint64{}
	a := p.running.now()
	for i := range a.members {
		m := &a.members[i]
		taken, _, _ := m.intake()
		n, _ := m.done(taken - min(taken, uint64(m.process().Unfinished)))
		done[m.of.Name] += n
	}
	return done
}

package diagnosis

import (
	"testing"
	"time"
)

func TestRecord_WhoIsSlowByNatureIsNotStalled(t *testing.T) {
	now := time.Unix(1000, 0)
	var r Record
	step := func(d time.Duration, taken uint64, queued int, paused bool) (stalled bool) {
		now = now.Add(d)
		r.Note(now, taken, queued, paused)
		_, stalled = r.Stalled(now)
		return stalled
	}
	cases := []struct {
		what    string
		after   time.Duration
		taken   uint64
		queued  int
		paused  bool
		stalled bool
	}{
		{"nothing waits", time.Minute, 0, 0, false, false},
		{"something waits", time.Second, 0, 1, false, false},
		{"for 5 s", 5 * time.Second, 0, 1, false, false},
		{"for 6 s", time.Second, 0, 1, false, true},
		{"it takes one in the end", 14 * time.Second, 1, 1, false, false},
		{"it has taken 20 s before", 50 * time.Second, 1, 1, false, false},
		{"this is more than three times that", 11 * time.Second, 1, 1, false, true},
		{"paused", time.Hour, 1, 1, true, false},
		{"resumed", time.Second, 1, 1, false, false},
		{"the pause has not made it slow", 63 * time.Second, 1, 1, false, true},
	}
	for _, c := range cases {
		if got := step(c.after, c.taken, c.queued, c.paused); got != c.stalled {
			t.Errorf("%s: stalled = %v, want %v", c.what, got, c.stalled)
		}
	}
}

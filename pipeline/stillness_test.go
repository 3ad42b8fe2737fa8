package pipeline

import (
	"testing"
	"time"
)

// A run that has stood still and continued by itself has stalled only once it stands still for much longer; a stop that a change ended does not
// count.
func TestStillness_ASlowRunHasNotStalled(t *testing.T) {
	now := time.Unix(1000, 0)
	var s stillness
	for _, step := range []struct {
		what    string
		after   time.Duration
		cause   string
		changed bool
		stalled string
	}{
		{"it runs", 0, "", false, ""},
		{"it stands still for the first time", time.Second, "a", false, "a"},
		{"a change is made", 20 * time.Second, "a", true, "a"},
		{"and it runs", time.Second, "", false, ""},
		{"it stands still", time.Second, "b", false, "b"},
		{"and goes on by itself", 10 * time.Second, "", false, ""},
		{"it stands still again", time.Second, "c", false, ""},
		{"for three times as long", 29 * time.Second, "c", false, ""},
		{"and more", 2 * time.Second, "c", false, "c"},
	} {
		now = now.Add(step.after)
		s.note(now, step.cause)
		if step.changed {
			s.excuse()
		}
		if got := s.stalled(now); got != step.stalled {
			t.Errorf("%s: stalled for %q, want %q", step.what, got, step.stalled)
		}
	}
}

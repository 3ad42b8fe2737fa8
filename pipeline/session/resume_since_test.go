package session

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// A checkpoint says which changes it has: neither the policy version nor the env steps of a line do, which may be written later.
func TestResume_ChangesAfterTheCheckpoint(t *testing.T) {
	for _, c := range []struct {
		name       string
		checkpoint uint64
		lines      []runs.Change
		want       string
	}{
		{"none", 0, nil, ""},
		{"its own, written after it", 2, []runs.Change{
			{Number: 2, Step: runs.StepBegin}, {Number: 3, Step: runs.StepNoted, PolicyVersion: 9},
			{Number: 2, Step: runs.StepBack, What: whatFallback, PolicyVersion: 10},
		}, ""},
		{"a later one at the same version", 2, []runs.Change{
			{Number: 2, Step: runs.StepCommitted, What: whatSwap, PolicyVersion: 9},
			{Number: 4, Step: runs.StepCommitted, What: whatReload, Component: "batcher", PolicyVersion: 9},
		}, "after this checkpoint came a reload of batcher (change 4)"},
		{"a later one that was refused", 2, []runs.Change{
			{Number: 2, Step: runs.StepCommitted, What: whatSwap}, {Number: 4, Step: runs.StepRefused, What: whatSwap},
		}, ""},
		{"its own, of which the line is missing", 2, []runs.Change{{Number: 2, Step: runs.StepBegin}},
			"this checkpoint has change 2, of which the run's events lack the end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run, err := runs.Create(t.TempDir(), "lab")
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range c.lines {
				if err := run.Note(line); err != nil {
					t.Fatal(err)
				}
			}
			s := &Session{run: run, before: runs.Checkpoint{PolicyVersion: 9, Change: c.checkpoint}}
			if got := s.swappedSince(); strings.TrimSpace(got) != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

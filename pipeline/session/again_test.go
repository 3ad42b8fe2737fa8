package session

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/replay"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// A checkpoint says itself which changes it has, also one that was made at its very boundary. A later change is taken back, and one between
// the checkpoint and the episode cannot be repeated.
func TestAgain_TakesBackWhatTheCheckpointDoesNotHave(t *testing.T) {
	run, err := runs.Create(t.TempDir(), "again")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}()
	for number, step := range []uint64{256, 512, 1024} {
		c := runs.Change{Step: runs.StepCommitted, Number: uint64(number + 1), What: whatSwap, Component: "rollout", EnvStep: step, Back: []string{"env.walk.use=v" + string(rune('0'+number))}}
		if err := run.Note(c); err != nil {
			t.Fatal(err)
		}
	}
	o := Again{Line: replay.Line{Number: 9, Episode: tape.Episode{}, EnvStep: 900}}
	for _, c := range []struct {
		name     string
		from     *runs.Checkpoint
		envSteps uint64
		fails    string
	}{
		{name: "at the boundary of the change that it has", from: &runs.Checkpoint{Change: 2}, envSteps: 512},
		{name: "at the boundary of a change that it has not", from: &runs.Checkpoint{Change: 1}, envSteps: 512, fails: "change 2 of the run, a swap of rollout at env step 512"},
		{name: "the beginning", fails: "change 2 of the run"},
	} {
		sets, err := o.undone(run, c.from, c.envSteps)
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v", c.name, err)
		case c.fails == "" && (err != nil || !slices.Contains(sets, "env.walk.use=v2") || slices.Contains(sets, "env.walk.use=v1")):
			t.Errorf("%s: %q, %v", c.name, sets, err)
		}
	}
}

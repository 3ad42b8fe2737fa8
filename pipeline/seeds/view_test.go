package seeds

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// A set that has more seeds than the terminal has rows shows the seeds in training, and the number of the others.
func TestView_FitsTheTerminal(t *testing.T) {
	t.Parallel()
	set := newSet(t, "", 0, 1, 2, 3, 4, 5, 6, 7).Set
	for seed, state := range []string{runs.Ended, runs.SeedFailed, runs.Running, runs.Running} {
		if err := set.Update(runs.SeedRun{Seed: uint64(seed), State: state, Error: strings.Repeat("a pole broke ", 10)}); err != nil {
			t.Fatal(err)
		}
	}
	width, height := 40, 5
	var out strings.Builder
	v := &View{Out: &out, Set: set, Terminal: true, Size: func() (int, int) { return width, height }}
	frame := func(want string) {
		t.Helper()
		out.Reset()
		v.Observe(set.Info().Seeds[1], Progress{})
		if out.String() != want {
			t.Errorf("%d × %d: %q, want %q", width, height, out.String(), want)
		}
	}
	sum := "1 ended, 1 failed, 2 running, 4 pending\n"
	frame("seed 2    0 env steps\nseed 3    0 env steps\n" + sum)
	height = 3
	frame("\x1b[3A\x1b[Jseed 2    0 env steps\n" + sum)
	width, height = 30, 9
	frame("\x1b[2A\x1b[Jseed 0    ended () after 0 e…\nseed 1    failed: \"a pole br…\nseed 2    0 env steps\nseed 3    0 env steps\n" +
		"seed 4    pending\nseed 5    pending\nseed 6    pending\nseed 7    pending\n")
	out.Reset()
	if v.End(); out.String() != "\x1b[8A\x1b[J" {
		t.Errorf("at its end: %q", out.String())
	}
}

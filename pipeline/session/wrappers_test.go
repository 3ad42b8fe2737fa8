package session_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// wrappedRuns trains small pipelines.
type wrappedRuns struct {
	*testing.T
	o session.Options
}

func newWrappedRuns(t *testing.T) *wrappedRuns {
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	return &wrappedRuns{t, session.Options{Parts: parts, Log: slog.New(slog.DiscardHandler)}}
}

// train begins a run of an environment and returns its result after so many env steps.
func (w *wrappedRuns) train(dir, use string, steps int, sets ...string) *session.Result {
	w.Helper()
	text := strings.Replace(cartpole, "cartpole@1", use, 1)
	sets = append(sets, "run.dir="+dir, fmt.Sprintf("run.stop.env_steps=%d", steps), "component.learner.lr_anneal_env_steps=4096")
	g, problems := graphtest.Parse("cartpole.toml", []byte(text), graph.ParseOptions{Parts: w.o.Parts, Sets: sets})
	if g == nil {
		w.Fatal(problems)
	}
	o := w.o
	o.Graph = g
	r, err := session.Train(w.Context(), o)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// resume resumes the run in a folder.
func (w *wrappedRuns) resume(dir string, steps int) *session.Result {
	w.Helper()
	run, err := runs.Open(dir, "cartpole")
	if err != nil {
		w.Fatal(err)
	}
	o := w.o
	o.Sets = []string{fmt.Sprintf("run.stop.env_steps=%d", steps)}
	s, err := session.Resume(w.Context(), run, o)
	if err != nil {
		w.Fatal(err)
	}
	r, err := s.Run(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if err := s.Close(); err != nil {
		w.Error(err)
	}
	return r
}

// A run with wrappers in the path gets the same result with a stop and a resume as without.
func TestWrappers_ResumedRunsAreExact(t *testing.T) {
	for use, list := range map[string]string{
		"cartpole@1":         "[{ time_limit = 30 }, { sticky_action = 0.2 }, { reward_normalize = { gamma = 0.9 } }, { action_repeat = 2 }, { frame_stack = 3 }]",
		"minatar-breakout@1": "[{ time_limit = 30 }, { resize = [6, 8] }, { sticky_action = 0.1 }]",
	} {
		t.Run(use, func(t *testing.T) {
			w, dir := newWrappedRuns(t), t.TempDir()
			set := "env.cartpole.wrap=" + list
			want := w.train(t.TempDir(), use, 4096, set)
			half := w.train(dir, use, 2048, set)
			got := w.resume(dir, 4096)
			if got.ParamsHash != want.ParamsHash || half.ParamsHash == want.ParamsHash {
				t.Errorf("resumed it comes to %s, in one go to %s", got.ParamsHash, want.ParamsHash)
			}
		})
	}
}

// So does one whose observations a module writes, which counts them in a memory of the host's.
func TestWrappers_ResumedRunsWithModulesAreExact(t *testing.T) {
	w, dir := newWrappedRuns(t), t.TempDir()
	list := func(every int) string {
		return fmt.Sprintf("env.cartpole.wrap=[{ time_limit = 30 }, { use = %q, args = { every = %d } }, { use = %q }]",
			testkit.Committed(t, "flicker"), every, testkit.Committed(t, "center"))
	}
	want := w.train(t.TempDir(), "cartpole@1", 4096, list(3))
	other := w.train(t.TempDir(), "cartpole@1", 4096, list(5))
	w.train(dir, "cartpole@1", 2048, list(3))
	if got := w.resume(dir, 4096); got.ParamsHash != want.ParamsHash || other.ParamsHash == want.ParamsHash {
		t.Errorf("resumed it comes to %s, in one go to %s, with another module to %s", got.ParamsHash, want.ParamsHash, other.ParamsHash)
	}
}

// The wrapper frame_stack is the policy's key by another way.
func TestWrappers_StackedFramesAreThePolicys(t *testing.T) {
	w := newWrappedRuns(t)
	hashes := map[string]string{}
	for name, set := range map[string]string{
		"wrapper": "env.cartpole.wrap=[{ frame_stack = 3 }]", "policy": "policy.main.frame_stack=3", "encoder": "policy.main.encoder.obs.stack=3", "none": "run.seed=1",
	} {
		hashes[name] = w.train(t.TempDir(), "cartpole@1", 2048, set).ParamsHash
	}
	if hashes["wrapper"] != hashes["policy"] || hashes["wrapper"] != hashes["encoder"] || hashes["wrapper"] == hashes["none"] {
		t.Errorf("parameters %v, want the same by whichever way, and others without", hashes)
	}
}

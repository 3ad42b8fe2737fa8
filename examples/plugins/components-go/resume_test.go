package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// A run whose curriculum rises, or whose rewards are shaped, resumes exactly from a checkpoint: interrupted and resumed it learns the
// same as in one piece, with the component built in and as a module in each language.
func TestComponents_AResumedRunIsExact(t *testing.T) {
	for _, x := range trainings {
		if x.kind != "curriculum" && x.kind != "shaper" {
			continue
		}
		keys := map[string]string{"built in": x.builtIn()}
		for name, module := range testkit.Guests(t, x.kind, t.TempDir()) {
			keys[name] = fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"log\", \"metric\"]", module)
		}
		whole := x.train(t, x.builtIn(), "run.stop.env_steps=8192", anneal)
		for name, own := range keys {
			t.Run(x.kind+", "+name, func(t *testing.T) {
				for _, stop := range []int{1024, 5000} {
					r, exact := x.interrupted(t, own, stop, 8192)
					if !exact || r.ParamsHash != whole.ParamsHash || r.Episodes != whole.Episodes {
						t.Errorf("interrupted after %d env steps, exact %v: parameters %.12s after %d episodes, want %.12s after %d", stop, exact,
							r.ParamsHash, r.Episodes, whole.ParamsHash, whole.Episodes)
					}
				}
			})
		}
	}
}

// A checkpoint taken while blocks are leased does not say that a run resumes from it exactly: the blocks are gone. Of the three blocks
// of a round the chooser keeps the third.
func TestChooser_ACheckpointDuringLeasesIsNotExact(t *testing.T) {
	x := trainings[0]
	keys := map[string]string{"built in": x.builtIn()}
	for name, module := range testkit.Guests(t, x.kind, t.TempDir()) {
		keys[name] = fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"log\", \"metric\"]", module)
	}
	for name, own := range keys {
		if r, exact := x.interrupted(t, own, 1, 2048, "component.chooser.of=2"); exact || r.ParamsHash == "" {
			t.Errorf("%s: exact %t, parameters %.12s", name, exact, r.ParamsHash)
		}
	}
}

// Without leased blocks the run resumes exactly, though rollouts have begun the blocks under way in the order of the chooser's releases,
// and of equal blocks it passes on the first to arrive.
func TestChooser_AResumedRunBeginsBlocksInTheSameOrder(t *testing.T) {
	x := trainings[0]
	keys := map[string]string{"built in": x.builtIn()}
	for name, module := range testkit.Guests(t, x.kind, t.TempDir()) {
		keys[name] = fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"log\", \"metric\"]", module)
	}
	whole := x.train(t, x.builtIn(), "run.stop.env_steps=8192", anneal)
	for name, own := range keys {
		for _, stop := range []int{384, 2000, 5000} {
			if r, exact := x.interrupted(t, own, stop, 8192); !exact || r.ParamsHash != whole.ParamsHash {
				t.Errorf("%s, interrupted after %d env steps: exact %t, parameters %.12s, want %.12s", name, stop, exact, r.ParamsHash, whole.ParamsHash)
			}
		}
	}
}

// anneal is where the learning rate ends, whenever the run does.
const anneal = "component.learner.lr_anneal_env_steps=8192"

// interrupted trains until stop, and then resumes until end. exact is the run's report of an exact resumption.
func (x *example) interrupted(t *testing.T, keys string, stop, end int, sets ...string) (r *session.Result, exact bool) {
	t.Helper()
	dir := t.TempDir()
	until := func(steps int) string { return fmt.Sprintf("run.stop.env_steps=%d", steps) }
	x.train(t, keys, append(sets, until(stop), anneal, "run.dir="+dir)...)
	run, err := runs.Open(dir, runs.Latest)
	if err != nil {
		t.Fatal(err)
	}
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	parts.Kinds[x.kind] = author.Kind(x.make)
	s, err := session.Resume(t.Context(), run, session.Options{Parts: parts, Sets: []string{until(end)}, Observe: func(e session.Event) {
		if e, ok := e.(session.Resumed); ok {
			exact = e.Exact
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err = s.Run(t.Context())
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	return r, exact
}

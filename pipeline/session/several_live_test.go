package session_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"

	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
)

// Every env step is accounted for, once, whichever policy acted in it.
func TestSeveral_EnvStepsAddUp(t *testing.T) {
	for name, c := range map[string]struct {
		file    string
		sets    []string
		ignored bool
	}{
		"chains":                  {file: duet},
		"one rollout":             {file: shared},
		"one rollout, async":      {file: shared, sets: []string{"train.mode=async"}},
		"chains, async":           {file: duet, sets: []string{"train.mode=async"}},
		"an opponent":             {file: shared + past, sets: []string{"component.rollout.opponents={ past = 0.5 }"}, ignored: true},
		"an opponent, async":      {file: shared + past, sets: []string{"component.rollout.opponents={ past = 0.5 }", "train.mode=async"}, ignored: true},
		"old ones dropped, async": {file: shared, sets: []string{"train.mode=async", "component.batcher_rival.max_policy_lag=1", "component.learner_rival.epochs=8"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTrainer(t)
			o := s.options()
			o.Graph = s.graph(c.file, c.sets...)
			x, err := session.Begin(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = x.Run(t.Context())
			n := x.Pipeline().Steps()
			if err = errors.Join(err, x.Close()); err != nil {
				t.Fatal(err)
			}
			if n.Made != n.Trained+n.Dropped+n.UnderWay || n.Trained == 0 || c.ignored != (n.Reasons["not_learned"] > 0) {
				t.Errorf("%+v: they do not add up, or those of policies that nobody learns are missing", n)
			}
		})
	}
}

// In asynchronous mode a checkpoint has every learner's state, and they continue from it.
func TestSeveral_AsynchronousRunsContinue(t *testing.T) {
	s := newTrainer(t)
	s.train(duet, "train.mode=async")
	run := s.newest()
	before, err := run.Load(runs.Latest)
	if err != nil {
		t.Fatal(err)
	}
	r := s.resume(s.options(), fmt.Sprint("run.stop.env_steps=", before.EnvSteps+65536)) // on a busy machine one of them makes thousands before the other
	after, err := run.Load(runs.Latest)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"learner", "learner_b"} {
		var was, is savedLearner
		if err := errors.Join(before.Components[name].Decode(&was), after.Components[name].Decode(&is)); err != nil || was.EnvSteps == 0 || is.EnvSteps <= was.EnvSteps || is.Version <= was.Version {
			t.Errorf("%s: %+v went on to %+v: %v", name, was, is, err)
		}
	}
	if after.EnvSteps != r.EnvSteps || r.ParamsHashes["rival"] == "" {
		t.Errorf("the checkpoint has %d env steps, the result %+v", after.EnvSteps, r)
	}
}

// Learners that wait for each other never wait for one that joins, leaves or is paused: boundaries keep coming.
func TestSeveral_NobodyWaitsForOneThatHasGone(t *testing.T) {
	s := newTrainer(t)
	alone, _, _ := strings.Cut(duet, "[component.rollout_b]")
	const long = "run.stop.env_steps=500000000"
	o := s.options()
	o.Graph = s.graph(alone, long)
	x, err := session.Begin(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ended := running(t.Context(), x)
	p := x.Pipeline()
	saved := func(what string, learners ...string) {
		t.Helper()
		err := p.AtNextBoundary(t.Context(), func(snapshot pipeline.Snapshot) error {
			states, err := snapshot()
			for _, name := range []string{"learner", "learner_b"} {
				if _, ok := states[name]; ok != slices.Contains(learners, name) {
					t.Errorf("%s: state of %s: %v", what, name, ok)
				}
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	change := func(file string) {
		t.Helper()
		next, err := p.Prepare(t.Context(), s.graph(file, long), pipeline.TransitionOptions{At: component.AtTrajectory})
		if err == nil {
			_, err = next.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	saved("at first", "learner")
	for range 5 {
		change(duet)
		saved("with another", "learner", "learner_b")
		if _, err := p.Pause(t.Context(), []string{"rollout_b"}); err != nil {
			t.Error(err)
		}
		saved("with another that is paused", "learner", "learner_b")
		answers, err := p.Pause(t.Context(), nil)
		for _, a := range answers {
			if err != nil || a.State != control.Paused {
				t.Errorf("pause of all: %+v, %v", a, err)
			}
		}
		if _, err := p.Resume(t.Context(), nil); err != nil {
			t.Error(err)
		}
		change(alone)
		saved("alone again", "learner")
	}
	change(duet)
	x.Stop(false)
	if err := errors.Join(<-ended, x.Close()); err != nil {
		t.Error(err)
	}
	c, err := s.newest().Load(runs.Latest)
	if err != nil || !c.Exact || c.Components["learner_b"].RawMeta == nil {
		t.Errorf("it ended with %v, exact %v (%s): %v", slices.Collect(maps.Keys(c.Components)), c.Exact, c.WhyNotExact, err)
	}
}

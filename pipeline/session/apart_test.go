package session

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/plugins/learner"
)

// slow makes environments whose step after some others does not end until the test lets it.
type slow struct {
	env.Plugin
	steps    atomic.Int64 // left until then
	at, free chan struct{}
}

func (s *slow) NewEnv(o env.Options) (env.Env, error) {
	e, err := s.Plugin.NewEnv(o)
	return &slowEnv{e, s}, err
}

type slowEnv struct {
	env.Env
	of *slow
}

func (e *slowEnv) Step(t int) error {
	if e.of.steps.Add(-1) == 0 {
		close(e.of.at)
		<-e.of.free
	}
	return e.Env.Step(t)
}

// A synchronous run has one loop. If a step of an environment in Go does not end, the run is cut and saved without it: with the newest
// parameters, and not exactly.
func TestCut_SavesDuringAStepThatDoesNotEnd(t *testing.T) {
	s := &slow{at: make(chan struct{}), free: make(chan struct{})}
	s.steps.Store(500) // in the eighth dataset, of 64 steps
	p := parts(t)
	load := p.Load
	p.Load = func(ctx context.Context, name string, e graph.EnvTable, dir string) (env.Plugin, error) {
		made, err := load(ctx, name, e, dir)
		s.Plugin = made
		return s, err
	}
	g, problems := graphtest.Parse("pipeline.toml", []byte(file), graph.ParseOptions{Parts: p, Sets: []string{"train.mode=sync", "component.batcher.dataset_rows=512", "component.learner.minibatch=512"}})
	if g == nil {
		t.Fatal(problems)
	}
	var states map[string]component.State
	var missing error
	x, err := pipeline.Build(t.Context(), g, pipeline.BuildOptions{Parts: p, Grace: time.Millisecond, Log: slog.New(slog.DiscardHandler),
		AtBoundary: func(snapshot pipeline.Snapshot) (err error) {
			states, err = snapshot()
			missing = err
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-s.at
		x.Stop(component.StopInterrupted)
	}()
	if reason, err := x.Run(t.Context()); reason != component.StopInterrupted || err != nil {
		t.Errorf("Run = %q, %v", reason, err)
	}
	if left := x.LeftBehind(); !slices.Contains(left, "rollout") {
		t.Errorf("left behind: %v, want the rollout", left)
	}
	if missing == nil || !strings.Contains(missing.Error(), "cut within a dataset") {
		t.Errorf("what is missing of the state: %v", missing)
	}
	_, w, err := learner.Weights(states["learner"])
	if err != nil || w.Version != 7 {
		t.Errorf("version %d, %v, want 7, of seven datasets", w.Version, err)
	}
	close(s.free)
	testkit.Until(t, "the arenas are closed", func() bool { return x.Close() == nil })
}

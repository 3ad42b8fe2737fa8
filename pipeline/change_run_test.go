package pipeline

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// liveFile is a pipeline of players and counters.
const liveFile = `rlhost = 1
[run]
name = "live"
[env.game]
use = "game@1"
[component.player]
kind = "player"
env = "game"
[component.counter]
kind = "counter"
[[wire]]
signal = "player.blocks"
slot = "counter.on_blocks"
mode = "queue"
depth = 4
on_full = "block"
`

func newStage() (*stageHooks, *graph.Parts) {
	s := &stageHooks{plays: map[string]int{}}
	return s, &graph.Parts{
		Kinds: map[string]func() component.Component{
			"player":  func() component.Component { return &player{s: s} },
			"counter": func() component.Component { return &counter{s: s} },
		},
		Builtins: []string{"game@1", "game@2", "game@3", "chess@1"},
		Load:     s.loadSource,
	}
}

func (s *stageHooks) loadSource(ctx context.Context, _ string, e graph.EnvTable, _ string) (env.Plugin, error) {
	if s.load != nil {
		if err := s.load(ctx, e.Use); err != nil {
			return nil, err
		}
	}
	text, obs := e.Use, uint32(4)
	if strings.HasPrefix(e.Use, "chess@") {
		obs = 64
	}
	if strings.HasSuffix(e.Use, ".wasm") {
		content, err := os.ReadFile(e.Use)
		if err != nil {
			return nil, err
		}
		text = string(content)
	}
	s.note(&s.loads, text)
	return &game{graphtest.Described{Obs: obs}, s, text}, nil
}

// liveRun is a pipeline that runs.
type liveRun struct {
	*Pipeline
	t     *testing.T
	s     *stageHooks
	parts *graph.Parts
	over  chan error
}

// runLive builds a pipeline and runs it until the test's end or end.
func runLive(t *testing.T, s *stageHooks, parts *graph.Parts, text string, o BuildOptions, sets ...string) *liveRun {
	t.Helper()
	o.Parts = parts
	p, err := Build(t.Context(), mustParse(t, text, parts, sets...), o)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	r := &liveRun{Pipeline: p, t: t, s: s, parts: parts, over: make(chan error, 1)}
	go func() {
		_, err := p.Run(context.Background())
		r.over <- err
	}()
	return r
}

// end ends the run, which must not have failed, and reports leaks.
func (r *liveRun) end() {
	r.t.Helper()
	r.Stop("enough")
	if err := <-r.over; err != nil {
		r.t.Errorf("Run: %v", err)
	}
	if err := r.Close(); err != nil {
		r.t.Errorf("Close: %v", err)
	}
	s := r.s
	if n := s.missed.Load(); n > 0 {
		r.t.Errorf("%d blocks came out of order", n)
	}
	if len(s.started) != len(s.stopped) {
		r.t.Errorf("started %v, stopped %v", s.started, s.stopped)
	}
	if len(s.loads) != len(s.closed) {
		r.t.Errorf("loaded %v, closed %v", s.loads, s.closed)
	}
}

// because adds the run's error to an error, where that is the reason.
func (r *liveRun) because(err error) error {
	if !errors.Is(err, ErrEnded) {
		return err
	}
	return fmt.Errorf("%w: run: %v", err, <-r.over)
}

func (r *liveRun) graph(sets ...string) *graph.Graph {
	r.t.Helper()
	g, problems := graphtest.With(r.Graph(), sets, r.parts)
	if g == nil {
		r.t.Fatalf("With %v:\n%s", sets, problems)
	}
	return g
}

// prepare prepares a change.
func (r *liveRun) prepare(o TransitionOptions, sets ...string) *Transition {
	r.t.Helper()
	x, err := r.Prepare(r.t.Context(), r.graph(sets...), o)
	if err != nil {
		r.t.Fatalf("Prepare %v: %v", sets, r.because(err))
	}
	return x
}

// change prepares and commits.
func (r *liveRun) change(o TransitionOptions, sets ...string) (*Transition, Outcome) {
	r.t.Helper()
	x := r.prepare(o, sets...)
	out, err := x.Commit(r.t.Context())
	if err != nil {
		r.t.Fatalf("Commit %v: %v", sets, r.because(err))
	}
	return x, out
}

// await waits until n more blocks have been counted.
func (r *liveRun) await(n uint64) {
	r.t.Helper()
	for target := r.s.counted.Load() + n; r.s.counted.Load() < target; {
		err := r.AtNextBoundary(r.t.Context(), func(Snapshot) error { return nil })
		if err != nil {
			r.t.Fatalf("%v\n%v", r.because(err), fmt.Sprint(r.Wires()))
		}
	}
}

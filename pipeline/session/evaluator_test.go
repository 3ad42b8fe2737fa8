package session_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// evaluatedFile is a pipeline with an evaluation due at every boundary. Its environments are a@1, whose episodes return 10, or b@1,
// whose return is 20.
const evaluatedFile = `
rlhost = 1
[run]
name = "evaluated"
stop = { env_steps = 100_000_000 }
evaluation = { every_env_steps = 1, share = 1.0, episodes = 4 }
[env.lab]
use = "a@1"
[train]
preset = "fast"
env = "lab"
mode = "sync"
[swap]
trial_envs = 0
probation = "0s"
[policy.main]
net = { kind = "mlp", hidden = [4] }
[component.rollout]
envs = 8
splits = 1
horizon = 16
[component.batcher]
dataset_rows = 128
[component.learner]
minibatch = 128
epochs = 1
[component.runner]
log = []
[component.listener]
kind = "listener"
loop = "learner"
[[wire]]
signal = "learner.stats"
slot = "listener.on_stats"
mode = "all"
depth = 64
on_full = "block"
`

// evaluated is a training of evaluatedFile, with its plugins and events.
type evaluated struct {
	*testing.T
	*session.Session
	ended chan error

	// The first batch of the plugin that evaluations load first plays no further than its first step before release.
	playing, release chan struct{}

	saved atomic.Int64 // snapshots of the listener

	mu      sync.Mutex
	plugins []*watchedPlugin
	returns []float64 // of the evaluations
}

// listener is a component that counts how often it is saved.
type listener struct {
	component.Component
	saved *atomic.Int64
}

func (*listener) Manifest() component.Manifest {
	return component.Manifest{Slots: []component.Port{{Name: "on_stats", Payload: "learner_stats"}}}
}

func (*listener) Configure(decode func(into any) error) error { return decode(&struct{}{}) }

func (*listener) Start(h *component.Host) error {
	h.Slot("on_stats", func(*hostabi.Message) {})
	return nil
}

func (l *listener) Snapshot() (component.State, error) {
	l.saved.Add(1)
	return component.State{}, nil
}

func (*listener) Stop() error { return nil }

// watchedPlugin counts its closings.
type watchedPlugin struct {
	*plugintest.Plugin
	closed atomic.Int32
}

func (p *watchedPlugin) Close() error {
	p.closed.Add(1)
	return p.Plugin.Close()
}

func (e *evaluated) load(_ context.Context, _ string, table graph.EnvTable, _ string) (env.Plugin, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	script, first := plugintest.Script{Name: table.Use}, sync.OnceFunc(func() {
		close(e.playing)
		<-e.release
	})
	held := len(e.plugins) == 1
	script.Reward = func(plugintest.At) float32 {
		if held {
			first()
		}
		return map[string]float32{"a@1": 1, "b@1": 2}[table.Use]
	}
	p := &watchedPlugin{Plugin: plugintest.New(script)}
	e.plugins = append(e.plugins, p)
	return p, nil
}

// evaluating begins the training and waits until an evaluation plays.
func evaluating(t *testing.T, sets ...string) *evaluated {
	t.Helper()
	e := &evaluated{T: t, ended: make(chan error, 1), playing: make(chan struct{}), release: make(chan struct{})}
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	parts.Builtins, parts.Load = []string{"a@1", "b@1"}, e.load
	parts.Kinds["listener"] = func() component.Component { return &listener{saved: &e.saved} }
	g, problems := graphtest.Parse("evaluated.toml", []byte(evaluatedFile), graph.ParseOptions{Parts: parts, Sets: append(sets, "run.dir="+t.TempDir())})
	if g == nil {
		t.Fatal(problems)
	}
	var err error
	e.Session, err = session.Begin(t.Context(), session.Options{Parts: parts, Graph: g, Log: slog.New(slog.DiscardHandler), Observe: e.observe})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := e.Session.Run(context.Background())
		e.ended <- err
	}()
	<-e.playing
	return e
}

func (e *evaluated) observe(event session.Event) {
	if x, ok := event.(session.Evaluated); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.returns = append(e.returns, x.Return)
	}
}

// told returns the returns of all evaluations until now.
func (e *evaluated) told() []float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.returns)
}

func (e *evaluated) count(name string) uint64 { return e.Pipeline().Stats().Counter(name).Value() }

// goesOn waits until more datasets have been learned from.
func (e *evaluated) goesOn() {
	e.Helper()
	before := e.count("learner/env_steps")
	testkit.Until(e, "training goes on", func() bool { return e.count("learner/env_steps") > before+256 })
}

// swap replaces the environments.
func (e *evaluated) swap(use string) {
	e.Helper()
	c, err := control.Dial(e.Context(), control.SocketPath(e.Folder().Dir))
	if err != nil {
		e.Fatal(err)
	}
	defer c.Close()
	var reply control.SwapReply
	if err := c.Do(e.Context(), control.VerbSwap, control.SwapRequest{Component: "rollout", File: use}, &reply, nil); err != nil || reply.Envs != 8 {
		e.Fatalf("swap to %s: %+v, %v", use, reply, err)
	}
}

// end stops the training. Every plugin is closed once then, without an environment that is left.
func (e *evaluated) end() {
	e.Helper()
	e.Stop(false)
	if err := <-e.ended; err != nil {
		e.Error(err)
	}
	if err := e.Close(); err != nil {
		e.Error(err)
	}
	for i, p := range e.plugins {
		if open, closed := p.Open(), p.closed.Load(); open != 0 || closed != 1 {
			e.Errorf("plugin %d, %s, has %d batches and was closed %d times", i, p.Spec().Name, open, closed)
		}
	}
}

// An evaluation that plays while the environments are swapped ends with the environments that it began with, and counts.
// The next one plays the new ones. Training waits for neither.
func TestEvaluator_ASwapLeavesTheEvaluationThatPlays(t *testing.T) {
	e := evaluating(t)
	e.goesOn()
	e.swap("b@1")
	e.goesOn()
	if told := e.told(); len(told) != 0 {
		t.Fatalf("evaluations of %v while the first one is held", told)
	}
	if n := e.count("eval/skipped"); n < 4 {
		t.Errorf("%d evaluations skipped meanwhile", n)
	}
	close(e.release)
	testkit.Until(t, "two evaluations more", func() bool { return len(e.told()) > 2 })
	e.goesOn()
	told := e.told()
	if told[0] != 10 || slices.ContainsFunc(told[1:], func(x float64) bool { return x != 20 }) {
		t.Errorf("evaluations return %v: want 10, of the environments that the first began with, then 20", told)
	}
	if n := e.count("eval/failures"); n != 0 {
		t.Errorf("%d evaluations failed", n)
	}
	e.end()
}

// Swaps there and back leave evaluations of one or the other, never of both.
func TestEvaluator_SwapsThereAndBack(t *testing.T) {
	e := evaluating(t)
	close(e.release)
	for range 5 {
		e.swap("b@1")
		e.swap("a@1")
	}
	e.goesOn()
	if i := slices.IndexFunc(e.told(), func(x float64) bool { return x != 10 && x != 20 }); i >= 0 {
		t.Errorf("evaluation %d returns %v", i, e.told()[i])
	}
	if n := e.count("eval/failures"); n != 0 {
		t.Errorf("%d evaluations failed", n)
	}
	e.end()
}

// The end of the run drops the evaluation that plays.
func TestEvaluator_TheEndOfTheRunDropsTheEvaluationThatPlays(t *testing.T) {
	e := evaluating(t)
	e.Stop(false)
	testkit.Until(t, "the run comes to its end", func() bool { return e.Pipeline().Stopping() != component.StopReason("") })
	close(e.release)
	e.end()
	if told, failed := e.told(), e.count("eval/failures"); len(told) > 1 || failed != 0 {
		t.Errorf("evaluations of %v, %d failed", told, failed)
	}
}

// Where an evaluation and a checkpoint are due at the same boundary, components are saved once for both.
func TestEvaluator_SharesTheSnapshotOfACheckpoint(t *testing.T) {
	e := evaluating(t, `run.checkpoint.every="1us"`)
	close(e.release)
	testkit.Until(t, "three evaluations", func() bool { return len(e.told()) >= 3 })
	e.end()
	const rows = 128
	boundaries := int64(e.count("learner/env_steps") / rows)
	if saved := e.saved.Load(); saved != boundaries || boundaries < 3 {
		t.Errorf("%d snapshots at %d boundaries with a checkpoint each", saved, boundaries)
	}
}

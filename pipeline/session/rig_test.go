package session

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/batcher"
	"github.com/rlhost/rlhost/plugins/inference"
	"github.com/rlhost/rlhost/plugins/learner"
	rolloutplugin "github.com/rlhost/rlhost/plugins/rollout"
	"github.com/rlhost/rlhost/plugins/runner"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wrap"
)

const examples = "../../examples/plugins/"

// file is a small pipeline: CartPole in C, without a trial and a probation unless a test asks for one.
const file = `
rlhost = 1
[run]
name = "cartpole"
stop = { env_steps = 500_000_000 }
[env.cartpole]
use = "` + examples + `cartpole-c/cartpole.wasm"
[train]
preset = "fast"
env = "cartpole"
[swap]
trial_envs = 0
probation = "0s"
[policy.main]
net = { hidden = [4] }
[component.rollout]
envs = 8
splits = 1
[component.batcher]
dataset_rows = 1024
[component.learner]
epochs = 1
minibatch = 1024
[component.runner]
log = []
`

// rig is a run with its commands that lasts until the test ends it.
type rig struct {
	*testing.T
	commands *commands
	run      *runs.Run
	pipeline *pipeline.Pipeline
	path     string
	ended    chan error
	once     sync.Once
}

func parts(t *testing.T) *graph.Parts {
	engine, err := wasm.New(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return &graph.Parts{
		Kinds: map[string]func() component.Component{
			"rollout": rolloutplugin.New, "inference": inference.New, "batcher": batcher.New, "learner": learner.New,
			"runner": runner.New(runner.Output{}),
		},
		Load: func(ctx context.Context, name string, e graph.EnvTable, dir string) (env.Plugin, error) {
			use, _ := e.Locate(dir, nil)
			p, err := engine.Load(ctx, use, nil, env.Source{Name: name, Args: e.Args, Grants: e.Grants})
			if err != nil {
				return nil, err
			}
			return wrap.New(p, e.Wrap, nil)
		},
		Policy: func(_ func(any) error, env *hostabi.EnvSpec) (component.Policy, error) {
			return &policy.Definition{Backend: cpu.New(), Network: policy.MLP{
				Obs: env.ObsElems(), Actions: env.Actions(), Hidden: []int{4}, Activation: policy.Tanh,
			}.Network()}, nil
		},
		CheckWrapper: wrap.Check,
		CheckPolicy: func(decode func(any) error) error {
			var table struct {
				Net struct {
					Kind       string `toml:"kind"`
					Hidden     []int  `toml:"hidden"`
					Activation string `toml:"activation"`
				} `toml:"net"`
				Backend      string `toml:"backend"`
				ShareTrunk   bool   `toml:"share_trunk"`
				NormalizeObs bool   `toml:"normalize_obs"`
			}
			return decode(&table)
		},
		Presets: graph.DefaultPresets(),
	}
}

// begin starts a run and its commands.
func begin(t *testing.T, sets ...string) *rig {
	t.Helper()
	r := prepare(t, sets...)
	r.start()
	return r
}

// start begins the run.
func (r *rig) start() {
	go func() {
		_, err := r.pipeline.Run(context.Background())
		r.commands.end()
		r.ended <- err
	}()
	r.Cleanup(r.end)
}

// prepare makes a run that has not begun, and its commands.
func prepare(t *testing.T, sets ...string) *rig {
	t.Helper()
	r := &rig{T: t, ended: make(chan error, 1)}
	var err error
	if r.run, err = runs.Create(t.TempDir(), "cartpole"); err != nil {
		t.Fatal(err)
	}
	p := parts(t)
	g, problems := graphtest.Parse("pipeline.toml", []byte(file), graph.ParseOptions{Parts: p, Sets: sets})
	if g == nil {
		t.Fatal(problems)
	}
	r.pipeline, err = pipeline.Build(t.Context(), g, pipeline.BuildOptions{Parts: p, RunDir: r.run.Dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	text := func(g *graph.Graph) ([]byte, error) { return []byte(g.Expanded()), nil }
	if r.commands, err = serve(r.options(p, text)); err != nil {
		t.Fatal(err)
	}
	r.path = r.commands.server.Path()
	return r
}

func (r *rig) options(p *graph.Parts, text func(*graph.Graph) ([]byte, error)) commandOptions {
	log, err := r.run.OpenLog()
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() {
		if err := log.Close(); err != nil {
			r.Error(err)
		}
	})
	return commandOptions{
		Pipeline: r.pipeline, Run: r.run, Parts: p, Log: slog.New(slog.NewJSONHandler(log, nil)), Text: text,
		Checkpoint: func(ctx context.Context) (control.CheckpointReply, error) {
			return control.CheckpointReply{}, r.pipeline.AtNextBoundary(ctx, func(pipeline.Snapshot) error { return nil })
		},
		Stop: func(now bool) {
			if now {
				r.pipeline.StopNow(component.StopInterrupted)
				return
			}
			r.pipeline.Stop(component.StopInterrupted)
		},
		LastCheckpoint: func() *control.CheckpointReply { return nil },
		Made:           func(uint64) {},
		Records:        log,
	}
}

// end ends the run, if it has not ended, and everything else.
func (r *rig) end() {
	r.once.Do(func() {
		r.pipeline.Stop(component.StopInterrupted)
		for what, err := range map[string]error{"run": <-r.ended, "commands": r.commands.close(), "pipeline": r.pipeline.Close(), "folder": r.run.Close()} {
			if err != nil {
				r.Errorf("%s: %v", what, err)
			}
		}
	})
}

// do makes a request over a new connection.
func (r *rig) do(ctx context.Context, verb control.Verb, q, reply any, notice func(string)) error {
	c, err := control.Dial(ctx, r.path)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Do(ctx, verb, q, reply, func(raw json.RawMessage) {
		var text string
		if notice != nil && json.Unmarshal(raw, &text) == nil {
			notice(text)
		}
	})
}

func (r *rig) mustDo(verb control.Verb, q, reply any) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	if err := r.do(ctx, verb, q, reply, nil); err != nil {
		r.Fatalf("%s: %v", verb, err)
	}
}

// learns waits until the run has learned from something.
func (r *rig) learns() {
	r.Helper()
	var s control.StatusReply
	testkit.Until(r, "something is learned", func() bool {
		r.mustDo(control.VerbStatus, control.StatusRequest{}, &s)
		return s.Policy > 0
	}, &s)
}

func code(err error) control.Code {
	var e *control.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// module is the path of CartPole in another language.
func module(t *testing.T, language string) string {
	t.Helper()
	path, err := filepath.Abs(examples + "cartpole-" + language + "/cartpole.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

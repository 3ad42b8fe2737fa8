package session_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/wrap"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// The tests named TestS1… check what must be true of the learning, one group for each of its numbered rules. They
// run real pipelines of the real components over scripted environments, and look at them through a tap.

// labFile is the pipeline of an experiment: the preset, made small, and a tap on the rollouts' and the learner's
// signals. Eight environments make 16 steps for each dataset.
const labFile = `
rlhost = 1
[run]
name = "lab"
seed = 7
stop = { env_steps = 512 }
[env.lab]
use = "lab@1"
[train]
preset = "fast"
env = "lab"
mode = "sync"
[policy.main]
net = { kind = "mlp", hidden = [16], activation = "tanh" }
[component.rollout]
envs = 8
splits = 2
horizon = 16
[component.batcher]
dataset_rows = 128
[component.learner]
minibatch = 32
lr_anneal_env_steps = 4096
[component.runner]
log = []
[component.tap]
kind = "tap"
[[wire]]
signal = "rollout.trajectories"
slot = "tap.on_trajectories"
mode = "all"
depth = 64
on_full = "block"
[[wire]]
signal = "rollout.episodes"
slot = "tap.on_episodes"
mode = "all"
depth = 4096
on_full = "block"
[[wire]]
signal = "learner.stats"
slot = "tap.on_stats"
mode = "all"
depth = 256
on_full = "block"
`

// experiment is one run.
type experiment struct {
	script  plugintest.Script
	plugin  env.Plugin                                                                // instead of the script
	load    func(context.Context, string, graph.EnvTable, string) (env.Plugin, error) // likewise
	changes bool                                                                      // made during the run: at a boundary environments may be changing, and then have no state; some never have one
	sets    []string                                                                  // as with --set
	extra   string                                                                    // after labFile
	dir     string                                                                    // run folder
	resume  map[string]component.State
	resumes int                                 // how often the run has been resumed
	backend func(policy.Backend) policy.Backend // wraps the policy's backend
	runner  func() component.Component          // instead of the rollout
	tapped  func()                              // called on the tap's loop for each trajectory
	// boundary is called at each dataset boundary, counted from 1.
	boundary func(p *pipeline.Pipeline, n int, snapshot func() (map[string]component.State, error)) error
}

// outcome is the result of an experiment.
type outcome struct {
	*tap
	reason component.StopReason
	err    error
	log    string
	hashes []string                   // of the parameters, after each dataset
	states map[string]component.State // at the last boundary
	stats  map[string]float64         // of the registry, at the end
}

// run builds and runs the experiment. Errors of the run are part of the outcome.
func (x experiment) run(t *testing.T) *outcome {
	t.Helper()
	o := &outcome{tap: &tap{tapped: x.tapped}, stats: map[string]float64{}}
	parts := x.parts(o.tap)
	g, problems := graphtest.Parse("lab.toml", []byte(labFile+x.extra), graph.ParseOptions{Parts: parts, Sets: x.sets})
	if g == nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	var log strings.Builder
	n := 0
	var p *pipeline.Pipeline
	options := pipeline.BuildOptions{Parts: parts, RunDir: x.dir, Resume: x.resume, Resumes: x.resumes,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	options.AtBoundary = func(snapshot func() (map[string]component.State, error)) error {
		n++
		states, err := snapshot()
		if err != nil && g.Synchronous && !(x.changes && errors.Is(err, component.ErrNoSnapshot)) {
			return err
		}
		_, w, err := learner.Weights(states["learner"])
		o.hashes, o.states = append(o.hashes, runs.ParamsHash(w.Params)), states
		if err == nil && x.boundary != nil {
			err = x.boundary(p, n, snapshot)
		}
		return err
	}
	p, err := pipeline.Build(t.Context(), g, options)
	if err != nil {
		t.Fatalf("Build: %v", err)
	}
	o.reason, o.err = p.Run(t.Context())
	for _, s := range p.Stats().Snapshot() {
		o.stats[s.Name] = s.Value
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	o.log = log.String()
	return o
}

// must is run without errors.
func (x experiment) must(t *testing.T) *outcome {
	t.Helper()
	o := x.run(t)
	if o.err != nil {
		t.Fatalf("Run: %v\n%s", o.err, o.log)
	}
	return o
}

// parts is the program's table with the lab's environment and the tap in it.
func (x experiment) parts(tapped *tap) *graph.Parts {
	parts, _ := builtin.New(builtin.Options{})
	parts.Kinds["tap"] = func() component.Component { return tapped }
	if x.runner != nil {
		parts.Kinds["rollout"] = x.runner
	}
	parts.Builtins = []string{"lab@1"}
	parts.Load = func(ctx context.Context, name string, table graph.EnvTable, dir string) (env.Plugin, error) {
		inner := x.plugin
		switch {
		case x.load != nil:
			var err error
			if inner, err = x.load(ctx, name, table, dir); err != nil {
				return nil, err
			}
		case inner == nil:
			inner = plugintest.New(x.script)
		}
		return wrap.New(inner, table.Wrap, nil)
	}
	if of := x.backend; of != nil {
		parts.Policy = func(decode func(into any) error, env *hostabi.EnvSpec) (component.Policy, error) {
			made, err := builtin.DecodePolicy(decode, env)
			if d, ok := made.(*policy.Definition); ok && err == nil {
				d.Backend = of(d.Backend)
			}
			return made, err
		}
	}
	return parts
}

// limitOf is the setting for a time limit of the lab's episodes, 0 for none.
func limitOf(steps int) string {
	if steps == 0 {
		return "env.lab.wrap=[]"
	}
	return fmt.Sprintf("env.lab.wrap=[{ time_limit = %d }]", steps)
}

// tap keeps copies of its messages. It is one component of one run; its fields may be read after the run, and under mu before.
type tap struct {
	component.Component
	h      *component.Host
	tapped func()

	mu       sync.Mutex
	blocks   []block
	episodes []trajectory.Episode
	reports  []map[string]float64 // of the learner
}

// block is a copy of a trajectory block.
type block struct {
	trajectory.Trajectory
	meta trajectory.Meta
}

func (c *tap) Manifest() component.Manifest {
	return component.Manifest{Slots: []component.Port{
		{Name: "on_trajectories", Payload: "trajectory"}, {Name: "on_episodes", Payload: "episode"},
		{Name: "on_stats", Payload: "learner_stats"},
	}}
}

func (c *tap) Configure(decode func(into any) error) error { return decode(&struct{}{}) }

func (c *tap) Start(h *component.Host) error {
	c.h = h
	h.Slot("on_trajectories", c.onTrajectory)
	h.Slot("on_episodes", func(m *hostabi.Message) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.episodes = append(c.episodes, trajectory.EpisodeOf(m))
	})
	h.Slot("on_stats", c.onStats)
	return nil
}

// read calls fn with the block of a message.
func (c *tap) read(m *hostabi.Message, fn func(schema arena.Schema, mem []byte)) {
	a, err := c.h.Arenas.Of(m.Handle)
	if err != nil {
		c.h.Fail(err)
		return
	}
	lease, err := a.Lease(m.Handle)
	if err != nil {
		c.h.Fail(err)
		return
	}
	c.mu.Lock()
	fn(a.Schema(), lease.Bytes())
	c.mu.Unlock()
	if err := lease.Release(); err != nil {
		c.h.Fail(err)
	}
}

func (c *tap) onTrajectory(m *hostabi.Message) {
	c.read(m, func(schema arena.Schema, mem []byte) {
		tr := trajectory.Trajectory{Schema: schema.(*trajectory.Schema), Mem: aligned(mem)}
		c.blocks = append(c.blocks, block{tr, *tr.Meta()})
	})
	if c.tapped != nil {
		c.tapped()
	}
}

// aligned copies a block to memory that views take.
func aligned(mem []byte) []byte {
	words := make([]byte, len(mem)+64)
	for i := range 64 {
		if uintptrOf(words[i:])%64 == 0 {
			words = words[i:]
			break
		}
	}
	return words[:copy(words, mem):len(mem)]
}

func (c *tap) onStats(m *hostabi.Message) {
	c.read(m, func(schema arena.Schema, mem []byte) {
		report := map[string]float64{}
		for i, name := range schema.(trajectory.Names) {
			report[name] = math.Float64frombits(binary.LittleEndian.Uint64(mem[8*i:]))
		}
		c.reports = append(c.reports, report)
	})
}

func (c *tap) Snapshot() (component.State, error) { return component.State{}, nil }
func (c *tap) Restore(component.State) error      { return nil }
func (c *tap) Stop() error                        { return nil }

// labRow is one row of one environment, with everything that the host and the environment wrote of it.
type labRow struct {
	env                          int
	obs                          [plugintest.ObsElems]float32
	mask                         string
	action                       int32
	reward, logProb, value       float32
	bootstrap                    float32 // 0 unless truncated
	terminated, truncated, valid byte
	version                      uint64
	step                         uint64 // env step
}

func (r *labRow) episode() int { return int(r.obs[plugintest.ObsEpisode]) }
func (r *labRow) at() int      { return int(r.obs[plugintest.ObsStep]) }

// rows returns the rows of every environment in the order of their time.
func (c *tap) rows(t *testing.T) map[int][]labRow {
	t.Helper()
	rows := map[int][]labRow{}
	for i := range c.blocks {
		b := &c.blocks[i]
		for env := range b.Schema.Shape.Envs {
			for step := range b.Schema.Shape.Steps {
				r := b.row(step, env)
				rows[r.env] = append(rows[r.env], r)
			}
		}
	}
	return rows
}

// row reads one row of a block.
func (b *block) row(t, env int) labRow {
	i := t*b.Schema.Shape.Envs + env
	r := labRow{
		env: int(b.meta.FirstEnv) + env, obs: b.observed(t, env), action: b.Int32(trajectory.Action)[i],
		reward: b.Float32(trajectory.Reward)[i], logProb: b.Float32(trajectory.LogProb)[i],
		value:      b.Float32(trajectory.Value)[i],
		terminated: b.Bytes(trajectory.Terminated)[i], truncated: b.Bytes(trajectory.Truncated)[i],
		valid: b.Bytes(trajectory.Valid)[i], version: b.Uint64(trajectory.PolicyVersion)[t],
		step: b.meta.FirstStep + uint64(t),
	}
	if r.truncated != 0 {
		r.bootstrap = b.Float32(trajectory.Bootstrap)[i]
	}
	if b.Schema.Has(trajectory.Mask) {
		m := b.Row(trajectory.Mask, t)
		for a := range m.Elems {
			r.mask += string('0' + rune(m.Data[env*m.StrideRow+a*m.StrideElem]))
		}
	}
	return r
}

// observed returns obs[t] of an environment.
func (b *block) observed(t, env int) (obs [plugintest.ObsElems]float32) {
	m := b.Row(trajectory.Obs, t)
	for i := range obs {
		obs[i] = m.Float32()[(env*m.StrideRow+i*m.StrideElem)/4]
	}
	return obs
}

// sameRows compares the rows of two runs, bit for bit.
func sameRows(t *testing.T, what string, got, want map[int][]labRow) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d environments, want %d", what, len(got), len(want))
	}
	for env := range want {
		if len(got[env]) != len(want[env]) {
			t.Errorf("%s: environment %d has %d rows, want %d", what, env, len(got[env]), len(want[env]))
			continue
		}
		for i := range want[env] {
			if got[env][i] != want[env][i] {
				t.Errorf("%s: environment %d row %d is\n%+v, want\n%+v", what, env, i, got[env][i], want[env][i])
				break
			}
		}
	}
}

// reported returns the values of one of the learner's numbers, one for each dataset.
func (c *tap) reported(name string) []float64 {
	var values []float64
	for _, r := range c.reports {
		v, ok := r[name]
		if !ok {
			v = math.NaN()
		}
		values = append(values, v)
	}
	return values
}

// dataset returns the n-th dataset, from 0, of a synchronous run: one block of every split, in order.
func (c *tap) dataset(splits, n int) *policy.Dataset {
	blocks := slices.Clone(c.blocks[n*splits : (n+1)*splits])
	slices.SortFunc(blocks, func(a, b block) int { return int(a.meta.FirstEnv) - int(b.meta.FirstEnv) })
	d := &policy.Dataset{}
	for _, b := range blocks {
		d.Blocks = append(d.Blocks, b.Trajectory)
	}
	return d
}

// uneven is a script whose environments end at different times and in every way.
func uneven() plugintest.Script {
	return plugintest.Script{
		Length: func(env, episode int) int { return 1 + (3*env+5*episode)%11 },
		Ends:   func(env, episode int) plugintest.End { return plugintest.End(1 + (env+episode)%3) },
		Reward: func(at plugintest.At) float32 { return 0.5*float32(at.Action) + float32(at.Step%3) - 1 },
	}
}

// masked is uneven with three actions, of which one or two are legal.
func masked() plugintest.Script {
	s := uneven()
	s.Actions = 3
	s.Legal = func(at plugintest.At, action int) bool {
		return (at.Env+at.Step+action)%3 != 0 && (at.Episode%2 == 0 || action != 1) || action == 2
	}
	return s
}

// only returns an error unless all values are the wanted one.
func only(values []float64, want float64) error {
	if len(values) == 0 {
		return errors.New("there are no values")
	}
	if slices.ContainsFunc(values, func(v float64) bool { return v != want }) {
		return errors.New("want one value alone")
	}
	return nil
}

// savedLearner is the part of a learner's snapshot that the tests read.
type savedLearner struct {
	Version    uint64             `json:"policy_version"`
	EnvSteps   uint64             `json:"env_steps"`
	Index      uint64             `json:"datasets"`
	Normalizer *policy.Normalizer `json:"normalizer"`
}

// learnerOf returns the learner's saved state at the last boundary.
func learnerOf(o *outcome) (policy.Network, savedLearner, error) {
	var s savedLearner
	n, _, err := learner.Weights(o.states["learner"])
	return n, s, errors.Join(err, o.states["learner"].Decode(&s))
}

// Package bench measures how fast environments step: alone, through the bus, and in any other way that it is given.
//
//	result, err := bench.Run(ctx, plugin, bench.Options{Parts: parts, Table: table, Envs: 64, Horizon: 64, Time: 2 * time.Second})
//
// It is one processor's work. How fast a training is, with a policy and a learner, is another question.
package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// MaxEnvs is the most environments that a pipeline takes, MaxHorizon the most steps of a block.
const (
	MaxEnvs    = 1 << 16
	MaxHorizon = 1 << 16
)

// Options say what is measured, and for how long.
type Options struct {
	Parts   *graph.Parts
	Table   graph.EnvTable // that the environment is made from, with paths relative to the working folder
	Envs    int            // stepped by one call; 1 to MaxEnvs
	Horizon int            // steps of a block on the bus, 1 to MaxHorizon
	Time    time.Duration  // for each figure
	More    []Way          // measured besides
}

// Way is one way of stepping. Step steps for about that long and returns env steps per second.
type Way struct {
	Name string
	Step func(d time.Duration) (float64, error)
}

// Result is what was measured.
type Result struct {
	Env    string   `json:"env"`
	Hash   string   `json:"hash"`
	Envs   int      `json:"envs"`
	Layout string   `json:"layout"`
	Rates  []Figure `json:"figures"`
}

// Figure is one way of stepping, by env steps in a second: decisions, of which an agent that does not act makes none.
type Figure struct {
	Name   string  `json:"name"`
	Best   float64 `json:"best_env_steps_per_s"`
	Median float64 `json:"median_env_steps_per_s"`
}

// rounds is how many rounds the ways of stepping take turns, so that a slow moment of the machine hits all.
const rounds = 10

// Run measures an environment, whose plugin stays the caller's. Too little memory for so many environments is an
// *env.MemoryError.
func Run(ctx context.Context, plugin env.Plugin, o Options) (*Result, error) {
	spec := plugin.Spec()
	result := &Result{Env: spec.Name, Hash: plugin.Hash(), Envs: o.Envs, Layout: "aos"}
	soa := spec.Caps&hostabi.CapPreferSoA != 0
	if soa {
		result.Layout = "soa"
	}
	if err := o.checkMemory(plugin); err != nil {
		return nil, err
	}
	alone, err := o.driver(plugin, soa)
	if err != nil {
		return nil, err
	}
	bus := &bus{o: &o}
	ways := append([]Way{
		{"alone", func(d time.Duration) (float64, error) { return stepAlone(alone, d) }},
		{"through the bus", func(d time.Duration) (float64, error) { return bus.step(ctx, d) }},
	}, o.More...)
	rates := make([][]float64, len(ways))
	for range rounds {
		for i, w := range ways {
			rate, err := w.Step(o.Time / rounds)
			if err != nil {
				return nil, errors.Join(err, alone.Close())
			}
			rates[i] = append(rates[i], rate)
		}
	}
	for i, w := range ways {
		slices.Sort(rates[i])
		result.Rates = append(result.Rates, Figure{w.Name, rates[i][rounds-1], rates[i][rounds/2]})
	}
	return result, alone.Close()
}

// checkMemory tells whether the environments have memory for what is mapped into one instance: two blocks of half of them.
// That is more than what is stepped alone.
func (o *Options) checkMemory(plugin env.Plugin) error {
	schema, err := trajectory.NewSchema(plugin.Spec(), trajectory.Shape{Steps: o.Horizon, Envs: o.Envs / o.splits(), Shaped: env.Shapes(plugin)})
	if err != nil {
		return err
	}
	return env.CheckMemory(plugin, busBlocks, schema)
}

// splits is how many parts the environments are stepped in on the bus.
func (o *Options) splits() int { return 2 - o.Envs%2 }

func (o *Options) driver(plugin env.Plugin, soa bool) (*env.Driver, error) {
	driver, err := env.NewDriver(plugin, env.DriverOptions{
		Options: env.Options{Name: "bench", Envs: o.Envs, Seed: 1}, SoA: soa,
	})
	if err != nil {
		return nil, err
	}
	seeds := make([]uint64, o.Envs)
	for i := range seeds {
		seeds[i] = env.Seed(1, i)
	}
	if err := driver.Reset(nil, seeds); err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	return driver, nil
}

// stepAlone calls the environment's Step and nothing else, over all rows of the block, with changing actions. It looks
// at the clock after the first step, the third, the seventh and so on, later after every 256.
func stepAlone(s *env.Driver, d time.Duration) (float64, error) {
	const most = 256
	steps, made, started := 0, 0, time.Now()
	for burst := 1; time.Since(started) < d; burst = min(2*burst, most) {
		for range burst {
			s.Draw(func(i int) uint64 { return uint64(steps+i) << 63 })
			if err := s.Advance(); err != nil {
				return 0, err
			}
			made += envSteps(s)
			steps++
		}
	}
	return float64(made) / time.Since(started).Seconds(), nil
}

// envSteps counts the env steps of the step that was made last: a row in which nobody acts is none, on the bus neither.
func envSteps(s *env.Driver) int {
	tr, row := s.Stepped()
	if acts := tr.Acts(row); acts != nil {
		return bytes.Count(acts, []byte{1})
	}
	return tr.Schema.Rows()
}

// busBlocks is how many blocks each split of busPipeline has.
const busBlocks = 2

// busPipeline steps environments with random actions; nobody receives the trajectories.
const busPipeline = `
rlhost = 1
[run]
name = "bench"
[env.bench]
use = "bench"
[component.rollout]
kind = "rollout"
loop = "main"
env = "bench"
envs = %d
splits = %d
horizon = %d
blocks = %d
[component.random]
kind = "random"
loop = "main"
[[wire]]
signal = "rollout.obs_ready"
slot = "random.act"
mode = "queue"
depth = 64
on_full = "block"
[[wire]]
signal = "random.actions"
slot = "rollout.on_actions"
mode = "reply"
depth = 64
on_full = "block"
`

// longestBusRun is how long is waited for the first step on the bus, whatever was asked for.
const longestBusRun = time.Minute

// bus runs a whole rollout component: splits, blocks, checks and messages, everything but a policy.
type bus struct {
	o     *Options
	least time.Duration // that a run takes in which a step ends
}

// step is its Way. Where not even one step ends in that time, it takes longer, and so does every later run.
func (b *bus) step(ctx context.Context, d time.Duration) (float64, error) {
	for {
		d = max(d, b.least)
		rate, err := b.run(ctx, d)
		if rate > 0 || err != nil {
			return rate, err
		}
		if d >= longestBusRun {
			return 0, fmt.Errorf("no step of %d environments ended in %v\n  help: step fewer at once: --envs", b.o.Envs, d)
		}
		b.least = min(4*d, longestBusRun)
	}
}

// run runs it once and returns env steps per second, 0 if no step has ended.
func (b *bus) run(ctx context.Context, d time.Duration) (float64, error) {
	parts := *b.o.Parts
	parts.Builtins = append(slices.Clip(parts.Builtins), "bench")
	parts.Load = func(ctx context.Context, name string, _ graph.EnvTable, _ string) (env.Plugin, error) {
		return b.o.Parts.Load(ctx, name, b.o.Table, ".")
	}
	text := fmt.Appendf(nil, busPipeline, b.o.Envs, b.o.splits(), b.o.Horizon, busBlocks)
	g, problems := graph.Parse("bench.toml", text, graph.ParseOptions{Parts: &parts})
	if g == nil {
		return 0, problems.Err()
	}
	p, err := pipeline.Build(ctx, g, pipeline.BuildOptions{Parts: &parts, Grace: time.Millisecond})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	started := time.Now()
	_, err = p.Run(ctx)
	rate := float64(p.Stats().Counter("rollout/env_steps").Value()) / time.Since(started).Seconds()
	return rate, errors.Join(err, p.Close())
}

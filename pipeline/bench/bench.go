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

// Options of a measurement.
type Options struct {
	Parts   *graph.Parts
	Table   graph.EnvTable // that the environment is made from, with paths relative to the working folder
	Envs    int            // stepped by one call; 1 to MaxEnvs
	Horizon int            // steps of a block on the bus, 1 to MaxHorizon
	Time    time.Duration  // for each figure
	More    []Way          // also measured
}

// Way is one way of stepping. Step steps for about that long and returns env steps per second.
type Way struct {
	Name string
	Step func(d time.Duration) (float64, error)
}

// Result of a measurement.
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

// Seed is that of the environments and of the random actions.
const Seed = 1

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
	driver, err := o.driver(plugin, soa)
	if err != nil {
		return nil, err
	}
	alone, bus := &alone{driver: driver, draw: drawRandom}, &bus{o: &o}
	ways := append([]Way{
		{"alone", alone.run},
		{"through the bus", func(d time.Duration) (float64, error) { return bus.step(ctx, d) }},
	}, o.More...)
	rates := make([][]float64, len(ways))
	for range rounds {
		for i, w := range ways {
			rate, err := w.Step(o.Time / rounds)
			if err != nil {
				return nil, errors.Join(err, driver.Close())
			}
			rates[i] = append(rates[i], rate)
		}
	}
	for i, w := range ways {
		slices.Sort(rates[i])
		result.Rates = append(result.Rates, Figure{w.Name, rates[i][rounds-1], rates[i][rounds/2]})
	}
	return result, driver.Close()
}

// checkMemory checks that the environments have memory for the blocks mapped into one instance: two blocks of half of the
// environments, which is more than one instance alone needs. Reset parameters are in that one's block and in all blocks on the bus.
func (o *Options) checkMemory(plugin env.Plugin) error {
	spec := plugin.Spec()
	if err := env.CheckParams(&spec, 1+busBlocks, o.Envs); err != nil {
		return err
	}
	schema, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: o.Horizon, Envs: o.Envs / o.splits(), Shaped: env.Shapes(plugin)})
	if err != nil {
		return err
	}
	return env.CheckMemory(plugin, busBlocks, schema)
}

// splits is how many parts the environments are stepped in on the bus.
func (o *Options) splits() int { return 2 - o.Envs%2 }

func (o *Options) driver(plugin env.Plugin, soa bool) (*env.Driver, error) {
	driver, err := env.NewDriver(plugin, env.DriverOptions{
		Options: env.Options{Name: "bench", Envs: o.Envs, Seed: Seed}, SoA: soa,
	})
	if err != nil {
		return nil, err
	}
	seeds := make([]uint64, o.Envs)
	env.Seeds(seeds, Seed, 0)
	if err := driver.Reset(nil, seeds); err != nil {
		return nil, errors.Join(err, driver.Close())
	}
	return driver, nil
}

// alone calls the environment's Step and nothing else, over all rows of the driver's block. Its actions are the same as on the bus.
type alone struct {
	driver *env.Driver
	words  []uint64
	steps  uint64 // made
	draw   func(tr trajectory.Trajectory, row int, step uint64, words []uint64)
	watch  func(on bool) // called before and after each burst; may be nil
}

// drawRandom draws the actions of a step as a component of kind random does.
func drawRandom(tr trajectory.Trajectory, row int, step uint64, words []uint64) {
	env.ActionWords(words, Seed, step, 0)
	tr.DrawActionsFrom(row, words)
}

// run is its Way. Only steps are timed: the actions of a burst are drawn before it, for at most the whole block, or for one step where
// they depend on masks. The first burst is one step, each later one twice as long as the one before. In all it takes at most patience
// times d, and one burst.
func (a *alone) run(d time.Duration) (float64, error) {
	made, stepped, err := a.burst(d)
	return float64(made) / stepped.Seconds(), err
}

// burst is run that returns the env steps made, and the time that they took.
func (a *alone) burst(d time.Duration) (made int, stepped time.Duration, err error) {
	const patience = 4
	began := time.Now()
	for burst := 1; stepped < d && time.Since(began) < patience*d; burst = min(2*burst, env.DriverRows) {
		n := a.prepare(burst)
		started := time.Now()
		if a.watch != nil {
			a.watch(true)
		}
		for range n {
			if err := a.driver.Advance(); err != nil {
				return made, stepped, err
			}
		}
		if a.watch != nil {
			a.watch(false)
		}
		stepped += time.Since(started)
		made += envSteps(a.driver, n)
	}
	return made, stepped, nil
}

// prepare draws the actions of the coming steps and returns of how many: at most that many.
func (a *alone) prepare(steps int) int {
	tr, row := a.driver.Acting()
	if tr.Schema.Has(trajectory.Mask) {
		steps = 1
	}
	steps = min(steps, tr.Schema.Shape.Steps-row)
	a.words = slices.Grow(a.words[:0], tr.Schema.Rows())[:tr.Schema.Rows()]
	for i := range steps {
		a.draw(tr, row+i, a.steps, a.words)
		a.steps++
	}
	return steps
}

// envSteps counts the env steps of the last steps: a row in which no agent acts is none, as on the bus.
func envSteps(s *env.Driver, steps int) (n int) {
	tr, row := s.Stepped()
	for range steps {
		if acts := tr.Acts(row); acts != nil {
			n += bytes.Count(acts, []byte{1})
		} else {
			n += tr.Schema.Rows()
		}
		row--
	}
	return n
}

// busBlocks is how many blocks each split of busPipeline has.
const busBlocks = 2

// busPipeline steps environments with random actions; the trajectories have no receiver.
const busPipeline = `
rlhost = 1
[run]
name = "bench"
seed = %d
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
	text := fmt.Appendf(nil, busPipeline, Seed, b.o.Envs, b.o.splits(), b.o.Horizon, busBlocks)
	g, err := graph.Parse("bench.toml", text, graph.ParseOptions{Parts: &parts})
	if err != nil {
		return 0, err
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

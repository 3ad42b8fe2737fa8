package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/plugins/runner"
)

type benchCommand struct {
	envFlags
	Envs    int     `default:"64" help:"Environments stepped by one call."`
	Seconds float64 `default:"2" help:"Time for each figure."`
}

// Help says what the figures are.
func (c *benchCommand) Help() string {
	return `Env steps per second of one processor: alone is the environment's own step, through the bus has blocks, checks and
messages with it, native Go is the same arithmetic without a sandbox, where there is such a version.

  rlhost bench cartpole@1
  rlhost bench my.wasm --envs 1024 --seconds 5`
}

// benchResult is what bench prints.
type benchResult struct {
	Env    string        `json:"env"`
	Hash   string        `json:"hash"`
	Envs   int           `json:"envs"`
	Layout string        `json:"layout"`
	Rates  []benchFigure `json:"figures"`
}

// benchFigure is one way of stepping, by env steps in a second.
type benchFigure struct {
	Name   string  `json:"name"`
	Best   float64 `json:"best_env_steps_per_s"`
	Median float64 `json:"median_env_steps_per_s"`
}

// maxBenchEnvs is the most that a pipeline takes.
const maxBenchEnvs = 1 << 16

// benchRounds is how many rounds the ways of stepping take turns, so that a slow moment of the machine hits all.
const benchRounds = 10

// way is one way of stepping: it steps for about that long and returns env steps per second.
type way struct {
	name string
	run  func(d time.Duration) (float64, error)
}

// Run measures an environment alone, through the bus, and as native Go where there is such a version.
func (c *benchCommand) Run(p *program) error {
	if c.Envs < 1 || c.Envs > maxBenchEnvs {
		return fail(exitUsage, fmt.Errorf("--envs %d: want 1 to %d", c.Envs, maxBenchEnvs))
	}
	if c.Seconds <= 0 || c.Seconds > 3600 {
		return fail(exitUsage, fmt.Errorf("--seconds %g: want more than 0, at most 3600", c.Seconds))
	}
	plugin, done, err := c.load(p)
	if err != nil {
		return err
	}
	result, err := c.measure(p, plugin)
	if err := errors.Join(err, done()); err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(p.out).Encode(result)
	}
	fmt.Fprintf(p.out, "%s  %d envs per call, layout %s\n", printable(result.Env), result.Envs, result.Layout)
	for _, f := range result.Rates {
		unit, scale := "M", 1e6
		if f.Best < 1e5 {
			unit, scale = "k", 1e3
		}
		fmt.Fprintf(p.out, "  %-18s %8.2f %s env steps/s (median %.2f), %.1f ns/step\n", f.Name, f.Best/scale, unit, f.Median/scale, 1e9/f.Best)
	}
	return nil
}

func (c *benchCommand) measure(p *program, plugin env.Plugin) (*benchResult, error) {
	spec := plugin.Spec()
	soa := spec.Caps&hostabi.CapPreferSoA != 0
	result := &benchResult{Env: spec.Name, Hash: plugin.Hash(), Envs: c.Envs, Layout: "aos"}
	if soa {
		result.Layout = "soa"
	}
	if err := c.checkMemory(plugin); err != nil {
		return nil, memoryHelp(err)
	}
	stage, err := c.stage(plugin, soa)
	if err != nil {
		return nil, err
	}
	least := time.Duration(0) // that a run on the bus takes
	ways := []way{
		{"alone", func(d time.Duration) (float64, error) { return stepAlone(stage, c.Envs, d) }},
		{"through the bus", func(d time.Duration) (rate float64, err error) {
			rate, least, err = c.throughBus(p, max(d, least))
			return rate, err
		}},
	}
	if strings.HasPrefix(strings.ToLower(spec.Name), "cartpole") {
		batch := newNative(c.Envs)
		ways = append(ways, way{"native Go", func(d time.Duration) (float64, error) { return batch.step(d), nil }})
	}
	rates := make([][]float64, len(ways))
	for range benchRounds {
		for i, w := range ways {
			rate, err := w.run(time.Duration(c.Seconds / benchRounds * float64(time.Second)))
			if err != nil {
				return nil, errors.Join(err, stage.Close())
			}
			rates[i] = append(rates[i], rate)
		}
	}
	for i, w := range ways {
		slices.Sort(rates[i])
		result.Rates = append(result.Rates, benchFigure{w.name, rates[i][benchRounds-1], rates[i][benchRounds/2]})
	}
	return result, stage.Close()
}

// checkMemory tells whether the environments have memory for what is mapped into one instance: two blocks of half of them.
// That is more than what is stepped alone.
func (c *benchCommand) checkMemory(plugin env.Plugin) error {
	schema, err := trajectory.NewSchema(plugin.Spec(), trajectory.Shape{Steps: busHorizon, Envs: c.Envs / c.splits()})
	if err != nil {
		return err
	}
	return env.CheckMemory(plugin, busBlocks, schema)
}

// splits is how many parts the environments are stepped in on the bus.
func (c *benchCommand) splits() int { return 2 - c.Envs%2 }

func (c *benchCommand) stage(plugin env.Plugin, soa bool) (*env.Driver, error) {
	stage, err := env.NewDriver(plugin, env.DriverOptions{
		Options: env.Options{Name: "bench", Envs: c.Envs, Seed: 1}, SoA: soa,
	})
	if err != nil {
		return nil, err
	}
	seeds := make([]uint64, c.Envs)
	for i := range seeds {
		seeds[i] = env.Seed(1, i)
	}
	if err := stage.Reset(nil, seeds); err != nil {
		return nil, errors.Join(err, stage.Close())
	}
	return stage, nil
}

// stepAlone calls the environment's Step and nothing else, over all rows of the block, with changing actions. It looks
// at the clock after the first step, the third, the seventh and so on, later after every 256.
func stepAlone(s *env.Driver, envs int, d time.Duration) (float64, error) {
	const most = 256
	steps, started := 0, time.Now()
	for burst := 1; time.Since(started) < d; burst = min(2*burst, most) {
		for range burst {
			action := s.Action()
			for i := range action {
				action[i] = int32((steps + i) & 1)
			}
			if err := s.Advance(); err != nil {
				return 0, err
			}
			steps++
		}
	}
	return float64(steps*envs) / time.Since(started).Seconds(), nil
}

// Blocks of busPipeline: their rows, and how many each split has.
const busHorizon, busBlocks = 64, 2

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

// throughBus runs a whole rollout component: splits, blocks, checks and messages, everything but a policy. Where not
// even one step ends in that time, it takes longer, and tells how long.
func (c *benchCommand) throughBus(p *program, d time.Duration) (rate float64, took time.Duration, err error) {
	for {
		rate, err := c.busRate(p, d)
		if rate > 0 || err != nil {
			return rate, d, err
		}
		if d >= longestBusRun {
			return 0, d, fmt.Errorf("no step of %d environments ended in %v\n  help: step fewer at once: --envs", c.Envs, d)
		}
		d = min(4*d, longestBusRun)
	}
}

// busRate runs it once and returns env steps per second, 0 if no step has ended.
func (c *benchCommand) busRate(p *program, d time.Duration) (float64, error) {
	parts, engines := builtin.New(p.logger(), runner.Output{})
	defer engines.Close()
	parts.Builtins = append(parts.Builtins, "bench")
	load := parts.Load
	parts.Load = func(ctx context.Context, name string, _ graph.EnvTable, _ string) (env.Plugin, error) {
		return load(ctx, name, c.table(parts), ".")
	}
	g, problems := graph.Parse("bench.toml", fmt.Appendf(nil, busPipeline, c.Envs, c.splits(), busHorizon, busBlocks), graph.ParseOptions{Parts: parts})
	if g == nil {
		return 0, problems.Err()
	}
	b, err := pipeline.Build(context.Background(), g, pipeline.BuildOptions{Parts: parts, Grace: time.Millisecond})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	started := time.Now()
	_, err = b.Run(ctx)
	rate := float64(b.Stats().Counter("rollout/env_steps").Value()) / time.Since(started).Seconds()
	return rate, errors.Join(err, b.Close())
}

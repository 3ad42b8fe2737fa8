package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/examples/plugins/cartpole-go/cartpole"
	"github.com/rlhost/rlhost/pipeline/bench"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

type benchCommand struct {
	envFlags
	Envs    int     `default:"64" help:"Environments stepped by one call."`
	Horizon int     `default:"64" help:"Steps of a block on the bus."`
	Seconds float64 `default:"2" help:"Time for each measurement."`
}

// Help describes the figures.
func (c *benchCommand) Help() string {
	return `Env steps per second of one processor, of several agents those of all that act. Alone is the environment's own step, through
the bus has blocks, checks and messages with it, native Go is the same arithmetic without a sandbox, where there is such a version.
All take the same random actions; drawing them is in the time on the bus alone.

  rlhost bench cartpole@1
  rlhost bench my.wasm --envs 1024 --seconds 5`
}

// Run measures an environment alone, through the bus, and as native Go where there is such a version.
func (c *benchCommand) Run(p *program) error {
	if c.Envs < 1 || c.Envs > bench.MaxEnvs {
		return fail(exitUsage, fmt.Errorf("--envs %d: want 1 to %d", c.Envs, bench.MaxEnvs))
	}
	if c.Horizon < 1 || c.Horizon > bench.MaxHorizon {
		return fail(exitUsage, fmt.Errorf("--horizon %d: want 1 to %d", c.Horizon, bench.MaxHorizon))
	}
	if c.Seconds <= 0 || c.Seconds > 3600 {
		return fail(exitUsage, fmt.Errorf("--seconds %g: want more than 0, at most 3600", c.Seconds))
	}
	var result *bench.Result
	err := c.withEnv(p, func(plugin env.Plugin, parts *graph.Parts, _ *builtin.Engines) (err error) {
		o := bench.Options{Parts: parts, Table: c.table(c.Env, parts), Envs: c.Envs, Horizon: c.Horizon, Time: time.Duration(c.Seconds * float64(time.Second))}
		if strings.HasPrefix(strings.ToLower(plugin.Spec().Name), "cartpole") {
			o.More = append(o.More, bench.Way{Name: "native Go", Step: nativeCartPole(c.Envs)})
		}
		result, err = bench.Run(context.Background(), plugin, o)
		return memoryHelp(err, "lower --envs or --horizon")
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return p.encode(result)
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

// nativeCartPole steps CartPole as Go code in this process, for comparison with a guest's speed.
func nativeCartPole(envs int) func(d time.Duration) (float64, error) {
	carts := newNativeCarts(envs)
	return func(d time.Duration) (float64, error) {
		steps, stepped := 0, time.Duration(0)
		for stepped < d {
			stepped += carts.burst()
			steps += env.DriverRows
		}
		return float64(steps*envs) / stepped.Seconds(), nil
	}
}

// nativeCarts are environments of CartPole as Go code. Their actions are random, and drawn outside of the time, like a guest's.
type nativeCarts struct {
	batch              *cartpole.Batch
	obs, final, reward []float32
	actions            []int32
	flags              []byte
	words              []uint64
	step               uint64
}

func newNativeCarts(envs int) *nativeCarts {
	c := &nativeCarts{
		batch: cartpole.NewBatch(envs, cartpole.DefaultMaxSteps),
		obs:   make([]float32, envs*cartpole.ObsDim), final: make([]float32, envs*cartpole.ObsDim), reward: make([]float32, envs),
		actions: make([]int32, env.DriverRows*envs), flags: make([]byte, 2*envs), words: make([]uint64, envs),
	}
	env.Seeds(c.words, bench.Seed, 0)
	c.batch.Reset(c.words, c.obs)
	return c
}

// burst makes env.DriverRows steps and says how long they took.
func (c *nativeCarts) burst() time.Duration {
	envs := len(c.words)
	for row := range slices.Chunk(c.actions, envs) {
		env.ActionWords(c.words, bench.Seed, c.step, 0)
		for i, word := range c.words {
			row[i] = int32(word >> 63)
		}
		c.step++
	}
	started := time.Now()
	for row := range slices.Chunk(c.actions, envs) {
		c.batch.Step(row, c.obs, c.reward, c.flags[:envs], c.flags[envs:], c.final)
	}
	return time.Since(started)
}

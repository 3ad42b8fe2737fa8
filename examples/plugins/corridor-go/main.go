// A corridor: the policy stands in one of its cells and must find the right end.
package main

import (
	"errors"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

type corridor struct{ length, cell, steps int }

func newCorridor(config *sdk.Config) (*corridor, error) {
	length := config.Int("length", 8)
	if length < 2 || length > 1000 {
		return nil, errors.New("length must be 2 to 1000")
	}
	return &corridor{length: int(length)}, nil
}

func (c *corridor) look(obs []float32) { obs[0] = float32(c.cell) / float32(c.length-1) }

func (c *corridor) Reset(rng *sdk.Rand, obs []float32) {
	c.cell = int(rng.Below(uint32(c.length - 1))) // anywhere but the end
	c.steps = 0
	c.look(obs)
}

func (c *corridor) Step(_ *sdk.Rand, action []int32, obs []float32) sdk.Result {
	if action[0] == 1 {
		c.cell++
	} else {
		c.cell = max(c.cell-1, 0)
	}
	c.steps++
	c.look(obs)
	if c.cell == c.length-1 {
		return sdk.Result{Reward: 1, Terminated: true}
	}
	return sdk.Result{Reward: -0.01, Truncated: c.steps >= 50}
}

func init() {
	wasm.Serve(sdk.Spec{
		Name: "corridor@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 1, 1), EpisodeLimit: 50,
	}, newCorridor)
}

func main() {}

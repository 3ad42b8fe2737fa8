// Scaled is CartPole with rewards that are multiplied by the argument reward_scale, as a WebAssembly guest.
package main

import (
	"github.com/rlhost/rlhost/examples/plugins/cartpole-go/cartpole"
	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

// carts multiplies the rewards of the carts under it.
type carts struct {
	*cartpole.Carts
	scale float32
}

// Step advances the environments and scales their rewards.
func (c *carts) Step(first int, rng []sdk.Rand, rows sdk.Rows[int32, float32]) {
	c.Carts.Step(first, rng, rows)
	for i := range rows.Rewards {
		rows.Rewards[i] *= c.scale
	}
}

func newCarts(config *sdk.Config, n int) (*carts, error) {
	return &carts{cartpole.NewCarts(n, cartpole.DefaultMaxSteps), float32(config.Float("reward_scale", 1))}, nil
}

func init() {
	wasm.ServeBatch(sdk.Spec{
		Name: "cartpole-scaled@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 0, cartpole.ObsDim),
		EpisodeLimit: cartpole.DefaultMaxSteps,
	}, newCarts)
}

func main() {}

// Cartpole-go is CartPole-v1 as a WebAssembly guest written in Go.
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags=-s -o cartpole.wasm .
package main

import (
	"errors"
	"math"
	"strconv"

	"github.com/rlhost/rlhost/examples/plugins/cartpole-go/cartpole"
	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

func init() {
	wasm.ServeBatch(sdk.Spec{
		Name:         "cartpole@1",
		Action:       sdk.Discrete(2),
		Obs:          sdk.Box(0, 0, cartpole.ObsDim),
		EpisodeLimit: cartpole.DefaultMaxSteps,
		Args: []sdk.Arg{{Name: "max_steps", Doc: "steps after which an episode is truncated", Kind: sdk.IntegerArg,
			Default: strconv.Itoa(cartpole.DefaultMaxSteps), Min: 1, Max: math.MaxInt32}},
		Describe: func(config *sdk.Config, spec *sdk.Spec) {
			spec.EpisodeLimit = int(config.Int("max_steps", cartpole.DefaultMaxSteps))
		},
	}, newCarts)
}

func newCarts(config *sdk.Config, n int) (*cartpole.Carts, error) {
	maxSteps := config.Int("max_steps", cartpole.DefaultMaxSteps)
	if maxSteps < 1 || maxSteps > math.MaxInt32 {
		return nil, errors.New("max_steps must be 1 to 2147483647")
	}
	return cartpole.NewCarts(n, uint32(maxSteps)), nil
}

func main() {}

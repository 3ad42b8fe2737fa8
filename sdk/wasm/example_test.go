package wasm_test

import (
	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

type walk struct{ position, length int32 }

func (w *walk) Reset(_ *sdk.Rand, obs []float32) {
	w.position = 0
	obs[0] = 0
}

func (w *walk) Step(_ *sdk.Rand, action []int32, obs []float32) sdk.Result {
	w.position += 2*action[0] - 1
	obs[0] = float32(w.position)
	return sdk.Result{Reward: -1, Terminated: w.position == w.length}
}

// A guest registers its environment in init; its main is empty.
func ExampleServe() {
	spec := sdk.Spec{Name: "walk@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 0, 1), EpisodeLimit: 200}
	wasm.Serve(spec, func(args *sdk.Config) (*walk, error) {
		return &walk{length: int32(args.Int("length", 8))}, nil
	})
	// Output:
}

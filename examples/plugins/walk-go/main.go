// Walk: from the start of a corridor to its end, whose length is a reset parameter. A walker that is not there after 64 steps has lost.
package main

import (
	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const (
	longest  = 32
	maxSteps = 64
)

type walk struct{ position, length, steps int }

func (w *walk) SetParams(params []float32) {
	w.length = int(sdk.ParamOr(params, 0, longest))
}

func (w *walk) look(obs []float32) {
	obs[0], obs[1] = float32(w.position)/longest, float32(w.length)/longest
}

func (w *walk) Reset(_ *sdk.Rand, obs []float32) {
	w.position, w.steps = 0, 0
	w.look(obs)
}

func (w *walk) Step(_ *sdk.Rand, action []int32, obs []float32) (r sdk.Result) {
	w.position = max(0, w.position+2*int(action[0])-1)
	w.steps++
	if r.Terminated = w.position >= w.length; r.Terminated {
		r.Reward = 1
	}
	r.Truncated = w.steps == maxSteps
	w.look(obs)
	return r
}

func init() {
	wasm.Serve(sdk.Spec{Name: "walk@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 1, 2), Params: sdk.Box(1, longest, 1), EpisodeLimit: maxSteps},
		func(*sdk.Config) (*walk, error) { return &walk{}, nil })
}

func main() {}

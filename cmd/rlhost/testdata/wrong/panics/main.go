// A walk that panics in the fifth step of an episode.
package main

import (
	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

type walk struct {
	steps int
	cells []float32
}

func newWalk(*sdk.Config) (*walk, error) { return &walk{cells: make([]float32, 5)}, nil }

// Reset starts an episode.
func (w *walk) Reset(_ *sdk.Rand, obs []float32) {
	w.steps = 0
	obs[0] = 0
}

// Step makes one step.
func (w *walk) Step(_ *sdk.Rand, _ []int32, obs []float32) sdk.Result {
	w.steps++
	obs[0] = w.at(w.steps)
	return sdk.Result{}
}

//go:noinline
func (w *walk) at(cell int) float32 { return w.cells[cell] }

func init() {
	wasm.Serve(sdk.Spec{Name: "panics@1", Action: sdk.Discrete(2), Obs: sdk.Box(0, 1, 1)}, newWalk)
}

func main() {}

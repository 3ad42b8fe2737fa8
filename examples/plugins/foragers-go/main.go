// Foragers: the environment of foragers-c in Go, bit for bit.
package main

import (
	"encoding/binary"
	"errors"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const (
	foragers = 4
	cells    = 16
	seen     = 3
	full     = 12
	meal     = 8
	old      = 32
)

// state is what is saved.
type state struct {
	Food            int32
	At, Energy, Age [foragers]int32
}

type world struct {
	state
	results [foragers]sdk.Result
	last    func(agent int)
}

func (w *world) SetLast(last func(agent int)) { w.last = last }

// born puts a forager somewhere.
func (w *world) born(rng *sdk.Rand, k int) {
	w.At[k], w.Energy[k], w.Age[k] = int32(rng.Below(cells)), full, 0
}

// look writes what one observes: where it is, how far the food is, and its energy.
func (w *world) look(k int, obs []float32) {
	row := obs[seen*k:][:seen]
	row[0], row[1], row[2] = float32(w.At[k]), float32(w.Food-w.At[k]), float32(w.Energy[k])
}

func (w *world) Reset(rng *sdk.Rand, obs []float32) {
	w.Food = int32(rng.Below(cells))
	for k := range foragers {
		w.born(rng, k)
	}
	for k := range foragers {
		w.look(k, obs)
	}
}

// advance moves a forager by one cell: to the left, not at all or to the right.
func (w *world) advance(rng *sdk.Rand, k int, move int32) (r sdk.Result) {
	w.At[k] += move - 1
	w.Energy[k]--
	w.Age[k]++
	if w.At[k] == w.Food {
		r.Reward = 1
		w.Energy[k] = min(w.Energy[k]+meal, full)
		w.Food = int32(rng.Below(cells))
	}
	if w.At[k] < 0 || w.At[k] >= cells || w.Energy[k] == 0 {
		r.Reward, r.Terminated = -1, true
	}
	r.Truncated = w.Age[k] >= old
	return r
}

func (w *world) Step(rng *sdk.Rand, action []int32, obs []float32) sdk.Result {
	for k := range foragers {
		w.results[k] = w.advance(rng, k, action[k])
	}
	for k := range foragers {
		w.look(k, obs)
	}
	for k, r := range w.results {
		if r.Terminated || r.Truncated {
			w.last(k)
			w.born(rng, k)
			w.look(k, obs)
		}
	}
	return sdk.Result{}
}

func (w *world) Reward(results []sdk.Result) { copy(results, w.results[:]) }

func (w *world) AppendBinary(b []byte) ([]byte, error) {
	return binary.Append(b, binary.LittleEndian, &w.state)
}

func (w *world) UnmarshalBinary(b []byte) error {
	if len(b) != binary.Size(&w.state) {
		return errors.New("not a saved world")
	}
	_, err := binary.Decode(b, binary.LittleEndian, &w.state)
	return err
}

func init() {
	wasm.Serve(sdk.Spec{Name: "foragers@1", Action: sdk.Discrete(3), Obs: sdk.Box(-cells, cells, seen), Agents: foragers, Respawn: true},
		func(*sdk.Config) (*world, error) { return &world{}, nil })
}

func main() {}

// Command forager is forager.c in Go: it writes the same bits.
package main

import (
	"encoding/binary"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const side = 5

type forager struct {
	row, column, goldRow, goldColumn, gold, steps int32
	found                                         float32 // in the last step
}

func newForager(*sdk.Config) (*forager, error) { return &forager{}, nil }

func (f *forager) look(obs *sdk.Observed) {
	field, place := sdk.ObservedAt[uint8](obs, "map"), sdk.ObservedAt[float32](obs, "place")
	clear(field)
	field[f.goldRow*side+f.goldColumn] = 1
	field[f.row*side+f.column] = 2
	sdk.ObservedAt[int32](obs, "inventory/gold")[0] = f.gold
	place[0], place[1] = float32(f.row)/(side-1), float32(f.column)/(side-1)
}

func (f *forager) bury(rng *sdk.Rand) {
	f.goldRow, f.goldColumn = int32(rng.Below(side)), int32(rng.Below(side))
}

func (f *forager) Reset(rng *sdk.Rand, obs *sdk.Observed) {
	*f = forager{}
	f.bury(rng)
	f.look(obs)
}

func (f *forager) ActionMask(legal []uint8) {
	for i, yes := range []bool{f.row > 0, f.row < side-1, f.column > 0, f.column < side-1} {
		legal[i] = 0
		if yes {
			legal[i] = 1
		}
	}
}

func (f *forager) Step(rng *sdk.Rand, action []int32, obs *sdk.Observed) (r sdk.Result) {
	switch action[0] {
	case 0:
		f.row = max(f.row-1, 0)
	case 1:
		f.row = min(f.row+1, side-1)
	case 2:
		f.column = max(f.column-1, 0)
	case 3:
		f.column = min(f.column+1, side-1)
	}
	if f.row == f.goldRow && f.column == f.goldColumn {
		f.gold++
		r.Reward = 1
		f.bury(rng)
	}
	f.steps++
	f.found, r.Discount = r.Reward, 0.75
	r.Terminated, r.Truncated = f.gold == 3, f.steps >= 60
	f.look(obs)
	return r
}

func (f *forager) Tell(figures []float32) { figures[0], figures[1] = f.found, float32(f.gold) }

func (f *forager) state() []*int32 {
	return []*int32{&f.row, &f.column, &f.goldRow, &f.goldColumn, &f.gold, &f.steps}
}

func (f *forager) AppendBinary(b []byte) ([]byte, error) {
	for _, x := range f.state() {
		b = binary.LittleEndian.AppendUint32(b, uint32(*x))
	}
	return b, nil
}

func (f *forager) UnmarshalBinary(b []byte) error {
	for i, x := range f.state() {
		*x = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

func init() {
	wasm.ServeDict(sdk.Spec{
		Name: "forager@1", Action: sdk.Discrete(4), EpisodeLimit: 60, Discount: true,
		Figures: []sdk.Figure{{Name: "found", Gather: sdk.Sum}, {Name: "gold", Episode: true}},
		Observations: []sdk.Space{
			sdk.Box(0, 2, side, side).As("map", sdk.Uint8), sdk.Discrete(4).As("inventory/gold", sdk.Int32), sdk.Box(0, 1, 2).As("place", sdk.Float32),
		},
	}, newForager)
}

func main() {}

// Command connectfour is examples/plugins/connectfour-c in Go: it writes the same bits.
package main

import (
	"errors"

	"github.com/rlhost/rlhost/sdk"
	"github.com/rlhost/rlhost/sdk/wasm"
)

const (
	columns = 7
	rows    = 6
	cells   = columns * rows
)

type game struct {
	stones [2][cells]uint8 // 1 where the player has one; row 0 is the lowest
	height [columns]uint8
	turn   int
	count  int
	result [2]float32 // the reward of the last step for each player
}

func newGame(*sdk.Config) (*game, error) { return &game{}, nil }

func (g *game) look(obs []float32) {
	for player := range 2 {
		for side := range 2 {
			for i, stone := range g.stones[player^side] {
				obs[(2*player+side)*cells+i] = float32(stone)
			}
		}
	}
}

func (g *game) Reset(rng *sdk.Rand, obs []float32) {
	*g = game{turn: int(rng.Below(2))} // whoever begins has the better game
	g.look(obs)
}

// run counts the player's stones from a cell on in one direction, that cell left out.
func (g *game) run(player, column, row, dc, dr int) int {
	for n := 0; ; n++ {
		column, row = column+dc, row+dr
		if column < 0 || column >= columns || row < 0 || row >= rows || g.stones[player][row*columns+column] == 0 {
			return n
		}
	}
}

func (g *game) wins(player, column, row int) bool {
	for _, d := range [][2]int{{1, 0}, {0, 1}, {1, 1}, {1, -1}} {
		if g.run(player, column, row, d[0], d[1])+g.run(player, column, row, -d[0], -d[1]) >= 3 {
			return true
		}
	}
	return false
}

func (g *game) Step(_ *sdk.Rand, action []int32, obs []float32) (r sdk.Result) {
	player, column := g.turn, int(action[g.turn])
	full, won := g.height[column] == rows, false // who plays a full column has lost
	if !full {
		row := int(g.height[column])
		g.height[column]++
		g.stones[player][row*columns+column] = 1
		g.count++
		won = g.wins(player, column, row)
	}
	g.result = [2]float32{}
	switch {
	case won:
		g.result[player], g.result[1-player] = 1, -1
	case full:
		g.result[player], g.result[1-player] = -1, 1
	}
	g.turn = 1 - player
	g.look(obs)
	r.Terminated = won || full || g.count == cells
	return r
}

func (g *game) Reward(results []sdk.Result) {
	for player := range results {
		results[player].Reward = g.result[player]
	}
}

func (g *game) Active(acts []uint8) { acts[1-g.turn] = 0 }

func (g *game) ActionMask(legal []uint8) {
	for i := range legal {
		legal[i] = 0
		if g.height[i%columns] < rows {
			legal[i] = 1
		}
	}
}

func (g *game) AppendBinary(b []byte) ([]byte, error) {
	for _, stones := range g.stones {
		b = append(b, stones[:]...)
	}
	return append(append(b, g.height[:]...), uint8(g.turn), uint8(g.count)), nil
}

func (g *game) UnmarshalBinary(b []byte) error {
	if len(b) != 2*cells+columns+2 || b[2*cells+columns] > 1 {
		return errors.New("not a game of Connect Four")
	}
	*g = game{turn: int(b[2*cells+columns]), count: int(b[2*cells+columns+1])}
	copy(g.stones[0][:], b)
	copy(g.stones[1][:], b[cells:])
	copy(g.height[:], b[2*cells:])
	return nil
}

func init() {
	wasm.Serve(sdk.Spec{
		Name: "connectfour@1", Action: sdk.Discrete(columns), Obs: sdk.Box(0, 1, 2, rows, columns), EpisodeLimit: cells, Agents: 2,
	}, newGame)
}

func main() {}

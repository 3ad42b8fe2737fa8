package main

import (
	"math"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Size of the board of connectfour@1, and how its observations have it: the own stones, then the other's, row 0 the lowest.
const (
	columns = 7
	rows    = 6
	cells   = columns * rows
)

// board is where the stones lie: own are the stones of the player to move, other the opponent's.
type board struct{ own, other [cells]bool }

// read takes the board from a row of observations.
func (b *board) read(r *policy.Request, row int) {
	m := &r.Obs[0]
	stones := m.Float32()
	for i := range cells {
		b.own[i] = stones[(row*m.StrideRow+i*m.StrideElem)/4] != 0
		b.other[i] = stones[(row*m.StrideRow+(cells+i)*m.StrideElem)/4] != 0
	}
}

// drop returns the cell where a stone in a column lands; ok is false where the column is full.
func (b *board) drop(column int) (cell int, ok bool) {
	for row := range rows {
		if cell := row*columns + column; !b.own[cell] && !b.other[cell] {
			return cell, true
		}
	}
	return 0, false
}

// wins reports whether a stone in a cell makes four in a row.
func wins(stones *[cells]bool, cell int) bool {
	for _, d := range [][2]int{{1, 0}, {0, 1}, {1, 1}, {1, -1}} {
		if 1+run(stones, cell, d[0], d[1])+run(stones, cell, -d[0], -d[1]) >= 4 {
			return true
		}
	}
	return false
}

// run counts stones from a cell on in one direction, that cell left out.
func run(stones *[cells]bool, cell, dc, dr int) (n int) {
	column, row := cell%columns+dc, cell/columns+dr
	for column >= 0 && column < columns && row >= 0 && row < rows && stones[row*columns+column] {
		n++
		column, row = column+dc, row+dr
	}
	return n
}

// loses reports whether the other player can win at once after a stone of the player's in a cell.
func (b *board) loses(cell int) bool {
	b.own[cell] = true
	defer func() { b.own[cell] = false }()
	for column := range columns {
		if reply, ok := b.drop(column); ok && wins(&b.other, reply) {
			return true
		}
	}
	return false
}

// search returns the best moves of a search of two moves: winning moves, else moves after which the other cannot win at
// once, else all. looking is how many moves it looks ahead; with 0 all are the best.
func (b *board) search(looking int) (best []int) {
	var winning, safe, all []int
	for column := range columns {
		cell, ok := b.drop(column)
		if !ok {
			continue
		}
		all = append(all, column)
		if looking > 0 && wins(&b.own, cell) {
			winning = append(winning, column)
		}
		if looking > 1 && !b.loses(cell) {
			safe = append(safe, column)
		}
	}
	switch {
	case len(winning) > 0:
		return winning
	case len(safe) > 0:
		return safe
	}
	return all
}

// searcher is a policy.Actor that looks some moves ahead and takes one of the best at random.
type searcher struct{ looking int }

func (searcher) Load(policy.Weights) error { return nil }
func (searcher) Close() error              { return nil }

func (s searcher) Act(requests []policy.Request) error {
	for i := range requests {
		r := &requests[i]
		for row := range r.Len() {
			r.Value[row] = 0
			if r.Action == nil {
				continue
			}
			var b board
			b.read(r, row)
			best := b.search(s.looking)
			if len(best) == 0 { // the board is full, and no player is to move
				best = []int{0}
			}
			u := float64(policy.Uniform(r.Seed, r.Env(row), r.Step, 0))
			r.Action[0].Int32()[row], r.LogProb[row] = int32(best[int(u*float64(len(best)))]), float32(-math.Log(float64(len(best))))
		}
	}
	return nil
}

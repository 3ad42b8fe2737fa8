package ppo

import (
	"cmp"
	"slices"
)

// deal gives chunks to seats: the longest first, each to the seat that has the fewest rows by then. Chunks end with their episodes, so shares of
// as many chunks would differ in rows, and all seats wait for the largest share in each step. It is reused.
type deal struct {
	order []int // chunks, the longest first
	rows  []int // by seat
	seats []int // by chunk
}

// out returns the seat of each chunk, until the next call. Chunk k has the rows from starts[k] to starts[k+1].
func (d *deal) out(starts []int, seats int) []int {
	chunks := len(starts) - 1
	length := func(k int) int { return starts[k+1] - starts[k] }
	d.order, d.rows, d.seats = d.order[:0], zeroed(d.rows, seats), sized(d.seats, chunks)
	for k := range chunks {
		d.order = append(d.order, k)
	}
	slices.SortFunc(d.order, func(x, y int) int { return cmp.Or(cmp.Compare(length(y), length(x)), cmp.Compare(x, y)) })
	for _, k := range d.order {
		least := 0
		for seat, rows := range d.rows {
			if rows < d.rows[least] {
				least = seat
			}
		}
		d.seats[k] = least
		d.rows[least] += length(k)
	}
	return d.seats
}

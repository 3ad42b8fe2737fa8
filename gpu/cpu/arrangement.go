package cpu

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/policy"
)

// steps is the order of a block's rows: the rows of a step lie together, after the rows of the previous step.
type steps struct {
	ends  []int32   // of the steps
	prev  []int32   // by row: the row before it, or -1
	state []float32 // [rows][state] that those without one begin from
}

func (s *steps) each(do func(lo, hi int)) {
	lo := 0
	for _, hi := range s.ends {
		do(lo, int(hi))
		lo = int(hi)
	}
}

func (s *steps) back(do func(lo, hi int)) {
	for i, hi := range slices.Backward(s.ends) {
		lo := 0
		if i > 0 {
			lo = int(s.ends[i-1])
		}
		do(lo, int(hi))
	}
}

// arrangement is the rows of a minibatch of a network that keeps a state in the order in which they are computed: blocks of
// whole chunks, each step by step.
type arrangement struct {
	rows  []uint32
	prev  []int32 // within a block
	state []float32
	cuts  []int   // where blocks begin, and the end
	ends  []int32 // of the steps of all blocks, within a block
	from  []int   // of block i, where its steps begin in ends; one more at the end

	follow []int32   // of the rows as they came
	stored []float32 // of those
	place  []int32   // where those are, within a block
	starts []int     // of chunks in those; one more at the end
}

// arrange takes rows in the order of policy.Dataset.Chunked. A block has so many chunks at most.
func (a *arrangement) arrange(d *policy.Dataset, n *policy.Network, rows []uint32, kept, chunks int) {
	a.follow, a.place = grown(a.follow, len(rows)), grown(a.place, len(rows))
	a.stored, a.state = grown(a.stored, len(rows)*kept), grown(a.state, len(rows)*kept)
	d.Follow(n, rows, a.follow, a.stored)
	a.starts = d.ChunkStarts(n, rows, a.starts[:0])
	a.rows, a.prev, a.ends, a.cuts, a.from = a.rows[:0], a.prev[:0], a.ends[:0], append(a.cuts[:0], 0), append(a.from[:0], 0)
	count := len(a.starts) - 1
	blocks := (count + chunks - 1) / chunks
	for b := range blocks {
		a.block(rows, kept, count*b/blocks, count*(b+1)/blocks)
	}
}

// block adds a block of chunks first to last.
func (a *arrangement) block(rows []uint32, kept, first, last int) {
	base := len(a.rows)
	for step, more := 0, true; more; step++ {
		more = false
		for c := first; c < last; c++ {
			i := a.starts[c] + step
			if i >= a.starts[c+1] {
				continue
			}
			more = true
			a.place[i] = int32(len(a.rows) - base)
			prev := int32(-1)
			if a.follow[i] >= 0 {
				prev = a.place[a.follow[i]]
			} else {
				copy(a.state[len(a.rows)*kept:], a.stored[i*kept:(i+1)*kept])
			}
			a.rows, a.prev = append(a.rows, rows[i]), append(a.prev, prev)
		}
		if more {
			a.ends = append(a.ends, int32(len(a.rows)-base))
		}
	}
	a.cuts, a.from = append(a.cuts, len(a.rows)), append(a.from, len(a.ends))
}

// steps returns the steps of the block that begins at row lo.
func (a *arrangement) steps(lo, kept int) steps {
	b, _ := slices.BinarySearch(a.cuts, lo)
	return steps{ends: a.ends[a.from[b]:a.from[b+1]], prev: a.prev[lo:], state: a.state[lo*kept:]}
}

// end returns where the block ends that begins at row lo.
func (a *arrangement) end(lo int) int {
	b, _ := slices.BinarySearch(a.cuts, lo)
	return a.cuts[b+1]
}

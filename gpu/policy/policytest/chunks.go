package policytest

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
)

// chunks: a row's loss has no gradient with respect to values of rows before its chunk. The gradient of two chunks of an episode
// is then the sum of each chunk's alone, from the state stored at its beginning; within one chunk it is not.
func chunks(t *testing.T, s *suite) {
	chunk := s.shape.net.Chunk
	if chunk == 0 {
		return
	}
	x := *s
	x.shape.net, x.shape.steps = s.shape.net.Clone(), 2*chunk
	if off := apart(t, &x, chunk); !(off <= 4*s.tol.Gradient) {
		t.Errorf("the gradients of two chunks alone come to another one than that of both: off by %g of the largest element", off)
	}
	x.shape.net.Chunk *= 2
	if off := apart(t, &x, chunk); !(off > 1e-3) {
		t.Errorf("the gradient of a chunk is that of its halves: off by %g of the largest element", off)
	}
}

// apart returns how far the gradient of all rows is from the sum of the gradients of the rows before a step and from it on, each learned
// alone, over the former's largest element. Targets do not depend on which rows are there.
func apart(t *testing.T, s *suite, step int) (off float64) {
	t.Helper()
	gradient := func(keep func(step int) bool) []float64 {
		d, params := s.stale(t)
		b, n := d.Blocks[0], 0
		valid := b.Bytes(trajectory.Valid)
		for i := range valid {
			if !keep(i / d.BlockEnvs()) {
				valid[i] = 0
			}
			n += int(valid[i])
		}
		c := s.config()
		c.Epochs, c.Minibatch, c.MaxGradNorm, c.AdamBeta1, c.ValueClip, c.Gamma, c.NormalizeAdvantage = 1, d.Rows(), 0, 0, 0, 0, false
		state, _ := s.update(t, params, c, d, 1)
		sums := make([]float64, len(state.AdamM))
		for i, g := range state.AdamM { // with β₁ = 0 it is the gradient of the mean
			sums[i] = float64(g) * float64(n)
		}
		return sums
	}
	before, behind := gradient(func(at int) bool { return at < step }), gradient(func(at int) bool { return at >= step })
	largest := 0.0
	for i, whole := range gradient(func(int) bool { return true }) {
		largest, off = max(largest, math.Abs(whole)), max(off, math.Abs(whole-before[i]-behind[i]))
	}
	return off / largest
}

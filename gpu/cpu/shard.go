package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/plan"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// shard computes the gradient of a minibatch, a block of its rows at a time. It reads parameters, their packed copies and
// the minibatch, and writes only its own memory.
type shard struct {
	*pass
	back  [][]float32 // per operation: its packed parameters
	batch *minibatch

	grad  []float32   // laid out as params
	delta [][]float32 // per operation, as out: gradient of the loss before the activation
	strip []float32   // for products to pack columns of B
	sums  kern.ColumnSums
}

func newShard(p *pass, back [][]float32, batch *minibatch) *shard {
	return &shard{pass: p, back: back, batch: batch, grad: aligned(p.size), delta: p.rowsOfAll(),
		strip: aligned(p.block * kern.StripPanels * kern.Panel)}
}

// prepare begins a minibatch of rows rows.
func (s *shard) prepare(c *ppo.Config, r ppo.Rates, rows int) {
	s.dist.begin(c, r, rows)
	clear(s.grad)
}

// rows adds the gradient of the first rows of the minibatch, a block at a time.
func (s *shard) rows(rows int) {
	for lo, n := 0, 0; lo < rows; lo += n {
		n = min(s.block, rows-lo)
		if s.kept > 0 {
			n = s.batch.order.end(lo) - lo
		}
		s.evaluate(lo, lo+n)
		s.backward(n)
	}
}

// backward passes the gradients of the heads on through the network.
func (s *shard) backward(rows int) {
	for _, step := range s.plan.Backward {
		s.ops[step.At].backward(s, rows)
	}
}

// evaluate runs rows lo to hi of the minibatch forward and through the loss.
func (s *shard) evaluate(lo, hi int) {
	b := s.batch
	if s.bytes {
		s.pixels = s.layout.pixels(b.bytes[lo*s.obs:])
	} else {
		s.x = matrix{b.obs.data[lo*b.obs.row:], b.obs.row, 1}
	}
	if s.staged && s.starts == nil {
		s.stage(s.x, hi-lo, nil, nil)
	}
	if s.kept > 0 {
		s.steps = b.order.steps(lo, s.kept)
	}
	s.forward(hi-lo, true)
	s.dist.learn(b, lo, hi)
}

// gradient returns the gradient over the rows of an operation before its activation.
func (s *shard) gradient(n *node) matrix { return matrix{s.delta[n.At], n.row, 1} }

// descend runs the product that passes a gradient on to an operation's input, to which other readers have added before or
// will add. The last of them multiplies with the derivative of the activation there.
func (s *shard) descend(e *plan.Edge) {
	g, below := &s.product, s.nodes[e.From.At]
	to := s.gradient(below)
	g.N, g.C, g.CRow, g.CPanel, g.Add = below.padded, to.data, to.row, kern.Panel, !e.First
	g.Epilogue, g.H = s.slope(e)
	s.set.Gemm(g)
}

// slope returns the derivative that the reader of an edge multiplies with, if it is the last one, and the values at which it is taken.
func (s *shard) slope(e *plan.Edge) (of kern.Epilogue, at []float32) {
	step := e.Slope()
	if step == nil {
		return kern.None, nil
	}
	return s.nodes[e.From.At].activation.backward, s.out[step.At]
}

// below returns the gradient over an input, for an operation that is no product to add to. The caller then calls passed.
func (s *shard) below(e *plan.Edge, rows int) matrix {
	to := s.gradient(s.nodes[e.From.At])
	if e.First {
		clear(to.data[:rows*to.row])
	}
	return to
}

// passed ends the gradient that below began, once the last reader has added to it.
func (s *shard) passed(e *plan.Edge, rows int) {
	if of, at := s.slope(e); of != kern.None {
		below := s.nodes[e.From.At]
		s.apply(of, s.gradient(below), at, rows, below.padded)
	}
}

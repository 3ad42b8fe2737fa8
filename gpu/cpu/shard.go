package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// shard computes the gradient of some rows of a minibatch. Everything it writes is its own; parameters, what is packed
// of them and the minibatch it shares with other shards, which all only read them.
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

// rows adds the gradient of rows lo to hi of the minibatch, a block at a time.
func (s *shard) rows(lo, hi int) {
	for n := 0; lo < hi; lo += n {
		n = min(s.block, hi-lo)
		if s.kept > 0 {
			n = s.batch.order.end(lo) - lo
		}
		s.evaluate(lo, lo+n)
		for _, o := range s.backward {
			o.backward(s, n)
		}
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
func (s *shard) gradient(n *node) matrix { return matrix{s.delta[n.at], n.row, 1} }

// descend runs the product that passes a gradient on to what an operation reads, where others have added before it or
// will. The last of them multiplies with the derivative of the activation there.
func (s *shard) descend(e *edge) {
	g, below, to := &s.product, e.below, s.gradient(e.below)
	g.N, g.C, g.CRow, g.CPanel, g.Add = below.padded, to.data, to.row, kern.Panel, !e.first
	if e.last {
		g.Epilogue, g.H = below.activation.backward, s.out[below.at]
	}
	s.set.Gemm(g)
}

// below returns the gradient over an input, for an operation that is no product to add to. The caller then calls passed.
func (s *shard) below(e *edge, rows int) matrix {
	to := s.gradient(e.below)
	if e.first {
		clear(to.data[:rows*to.row])
	}
	return to
}

// passed ends the gradient that below began, once the last reader has added to it.
func (s *shard) passed(e *edge, rows int) {
	if below := e.below; e.last && below.activation.backward != kern.None {
		s.apply(below.activation.backward, s.gradient(e.below), s.out[below.at], rows, below.padded)
	}
}

package cpu

import (
	"math"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// shard computes the gradient of some rows of a minibatch. Everything it writes is its own; parameters, their
// transposes and the minibatch it shares with other shards, which all only read them.
type shard struct {
	*pass
	back  [][]float32 // per layer: the transposed weights, packed
	batch *minibatch

	grad  []float32   // laid out as params
	delta [][]float32 // per layer [encoders][block][out]: gradient of the loss before the activation
	strip []float32   // for products to pack columns of B
	loss  kern.Loss
	sums  kern.ColumnSums
}

func newShard(p *pass, back [][]float32, batch *minibatch) *shard {
	s := &shard{pass: p, back: back, batch: batch, grad: aligned(p.size)}
	for _, y := range p.layers {
		s.delta = append(s.delta, aligned(p.encoders*p.block*y.row))
	}
	s.loss.NewLogProb, s.strip = aligned(p.block), aligned(p.block*kern.StripPanels*kern.Panel)
	return s
}

// prepare begins a minibatch of rows rows.
func (s *shard) prepare(c *ppo.Config, r ppo.Rates, rows int) {
	mean := 1 / float64(rows)
	bound := float32(math.Inf(1))
	if c.ValueClip > 0 {
		bound = float32(c.ValueClip)
	}
	s.loss = kern.Loss{Actions: s.net.Actions, LD: s.block, NewLogProb: s.loss.NewLogProb, Scratch: s.scratch,
		Low: 1 - r.Clip, High: 1 + r.Clip, Clip: r.Clip, Mean: float32(mean),
		Entropy: float32(float64(r.Entropy) * mean), ValueCoef: float32(c.ValueCoef * mean), ValueClip: bound}
	clear(s.grad)
}

// rows adds the gradient of rows lo to hi of the minibatch, a block at a time.
func (s *shard) rows(lo, hi int) {
	for ; lo < hi; lo += s.block {
		s.gradient(lo, min(lo+s.block, hi))
	}
}

// evaluate runs rows lo to hi of the minibatch forward and through the loss, which leaves the gradients of logits
// and values in their place.
func (s *shard) evaluate(lo, hi int) (x matrix) {
	n := hi - lo
	b := s.batch
	x = matrix{b.obs.data[lo*b.obs.row:], b.obs.row, 1}
	if len(s.layers) == 0 {
		x = s.stage(x, n, nil, nil)
	}
	s.forward(x, n, true, s.value[:s.block])
	s.forbid(lo, hi)
	l := &s.loss
	l.Rows, l.Logits, l.Value = n, s.logits, s.value
	l.Action, l.OldLogProb, l.OldValue = b.action[lo:], b.logProb[lo:], b.value[lo:]
	l.Advantage, l.Return = b.advantage[lo:], b.ret[lo:]
	s.set.Loss(l)
	return x
}

// forbid makes the logits of masked actions impossible.
func (s *shard) forbid(lo, hi int) {
	if len(s.batch.mask) == 0 {
		return
	}
	for row := lo; row < hi; row++ {
		for a, legal := range s.batch.mask[row*s.net.Actions : (row+1)*s.net.Actions] {
			if legal == 0 {
				s.logits[a*s.block+row-lo] = kern.Illegal
			}
		}
	}
}

// gradient adds the gradient of rows lo to hi of the minibatch.
func (s *shard) gradient(lo, hi int) {
	n := hi - lo
	x := s.evaluate(lo, hi)
	s.headBackward(&s.actorHead, x, n, s.logits)
	s.headBackward(&s.criticHead, x, n, s.value)
	for e := range s.encoders {
		for i := len(s.layers) - 1; i >= 0; i-- {
			in := x
			if i > 0 {
				in = s.activations(s.hidden, i-1, e)
			}
			s.layerBackward(i, e, in, n)
		}
	}
}

// headBackward adds the gradient of a head, given that of its outputs [outputs][block], and passes it on to the
// encoder. The critic of a shared trunk adds to what the actor passed on.
func (s *shard) headBackward(h *head, x matrix, rows int, delta []float32) {
	in := s.headInput(h, x)
	// dW[a][j] += Σ_r delta[a][r] · in[r][j]
	s.product = kern.Gemm{M: h.outputs, N: s.width, K: rows, A: delta, ARow: s.block, ACol: 1,
		B: in.data, BRow: in.row, BPanel: kern.Panel,
		C: s.grad[h.weight:], CRow: s.width, CPanel: kern.Panel, Add: true}
	s.set.Gemm(&s.product)
	for a := range h.outputs {
		s.grad[h.bias+a] += sum(delta[a*s.block : a*s.block+rows])
	}
	if len(s.layers) == 0 {
		return
	}
	out := s.activations(s.delta, len(s.layers)-1, h.encoder)
	// d[r][j] = Σ_a delta[a][r] · W[a][j], times the activation's derivative
	g := &s.product
	*g = kern.Gemm{M: rows, N: s.width, K: h.outputs, A: delta, ARow: 1, ACol: s.block,
		B: s.params[h.weight:], BRow: s.width, BPanel: kern.Panel,
		C: out.data, CRow: out.row, CPanel: kern.Panel}
	if s.encoders == 1 && h == &s.actorHead {
		s.set.Gemm(g)
		return
	}
	g.Add = s.encoders == 1
	g.Epilogue, g.H = s.activation.backward, in.data
	s.set.Gemm(g)
}

// sum adds in four interleaved partial sums.
func sum(x []float32) float32 {
	var s [4]float32
	for ; len(x) >= 4; x = x[4:] {
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
		s[3] += x[3]
	}
	for _, v := range x {
		s[0] += v
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// layerBackward adds the gradient of layer i of encoder e, which read in, and passes it on to the layer below.
func (s *shard) layerBackward(i, e int, in matrix, rows int) {
	y, d := &s.layers[i], s.activations(s.delta, i, e)
	s.sums = kern.ColumnSums{Rows: rows, N: y.out, X: d.data, XRow: d.row, Out: s.grad[y.bias+e*y.out:]}
	s.set.ColumnSums(&s.sums)
	// dW[j][o] += Σ_r in[r][j] · d[r][o]
	g := &s.product
	*g = kern.Gemm{M: y.in, N: y.out, K: rows, A: in.data, ARow: in.col, ACol: in.row,
		B: d.data, BRow: d.row, BPanel: kern.Panel, Strip: s.strip,
		C: s.grad[y.weight+e*y.in*y.out:], CRow: kern.Panel, CPanel: y.in * kern.Panel, Add: true}
	s.set.Gemm(g)
	if i == 0 {
		return
	}
	// d'[r][j] = Σ_o d[r][o] · W[j][o], times the activation's derivative
	below := s.activations(s.delta, i-1, e)
	*g = kern.Gemm{M: rows, N: s.layers[i-1].out, K: y.real, A: d.data, ARow: d.row, ACol: 1,
		B: s.back[i][e*pad(y.in)*y.real:], BRow: kern.Panel, BPanel: y.real * kern.Panel,
		C: below.data, CRow: below.row, CPanel: kern.Panel, H: in.data, Epilogue: s.activation.backward}
	s.set.Gemm(g)
}

package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// projection is a dense node that a head reads: few outputs, without an activation, each kept as a column of a block of
// rows. Its weights are transposed: output a reads weight[a*padded : (a+1)*padded].
// Appended parameters are more columns.
type projection struct {
	node
	weight, bias plan.Tensor
	dense        int // columns of the dense node
	tail         plan.Tensor
}

func newProjection(n node) *projection {
	n.padded, n.row = pad(n.Width), 0
	dense := layer.Elems(n.Shape)
	h := &projection{node: n, dense: dense, weight: plan.Tensor{Size: dense * n.padded, Count: n.Width * dense}, bias: plan.Flat(dense)}
	h.weight.Index = func(i int) int { return i%dense*n.padded + i/dense }
	if a := n.Append; a != nil && !a.Fixed {
		h.tail = plan.Flat(a.N)
	}
	return h
}

func (h *projection) params() []*plan.Tensor {
	if h.tail.Count == 0 {
		return []*plan.Tensor{&h.weight, &h.bias}
	}
	return []*plan.Tensor{&h.weight, &h.bias, &h.tail}
}

func (h *projection) forward(p *pass, rows int) {
	in, out := p.input(&h.In[0]), p.columns(h.Step)
	for a := range h.dense {
		p.head = kern.Head{Rows: rows, K: h.padded, X: in.data, XRow: in.row, Out: out[a*p.block:],
			W: p.params[h.weight.At+a*h.padded:], Bias: p.params[h.bias.At+a]}
		p.set.Head(&p.head)
	}
	for a := h.dense; a < h.Out; a++ {
		x := float32(h.Append.Init)
		if h.tail.Count > 0 {
			x = p.params[h.tail.At+a-h.dense]
		}
		column := out[a*p.block:][:p.block]
		for r := range column {
			column[r] = x
		}
	}
}

// backward reads the gradient of the outputs in place of the outputs.
func (h *projection) backward(s *shard, rows int) {
	in, g := s.input(&h.In[0]), s.columns(h.Step)
	// dW[a][j] += Σ_r g[a][r] · in[r][j]
	p := &s.product
	*p = kern.Gemm{M: h.dense, N: h.padded, K: rows, A: g, ARow: s.block, ACol: 1,
		B: in.data, BRow: in.row, BPanel: kern.Panel,
		C: s.grad[h.weight.At:], CRow: h.padded, CPanel: kern.Panel, Add: true}
	s.set.Gemm(p)
	for i := range h.tail.Count {
		s.grad[h.tail.At+i] += sum(g[(h.dense+i)*s.block:][:rows])
	}
	for a := range h.dense {
		s.grad[h.bias.At+a] += sum(g[a*s.block : a*s.block+rows])
	}
	if h.In[0].From == nil {
		return
	}
	// g'[r][j] = Σ_a g[a][r] · W[a][j], times the activation's derivative
	*p = kern.Gemm{M: rows, K: h.dense, A: g, ARow: 1, ACol: s.block,
		B: s.params[h.weight.At:], BRow: h.padded, BPanel: kern.Panel}
	s.descend(&h.In[0])
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

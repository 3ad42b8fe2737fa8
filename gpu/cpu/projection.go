package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// projection is a dense node that a head reads: few outputs, without an activation, each kept as a column of a block of
// rows. Its weights are transposed: output a reads weight[a*padded : (a+1)*padded].
// What is appended to it are more columns.
type projection struct {
	node
	weight, bias param
	dense        int // columns of the dense node
	tail         param
	appended     *layer.Append
}

func newProjection(n node) *projection {
	h := &projection{node: n, dense: n.out, weight: param{size: n.out * n.padded, count: n.width * n.out}, bias: vector(n.out)}
	h.weight.index = func(i int) int { return i%n.out*n.padded + i/n.out }
	return h
}

// append adds columns to the projection that is read, or returns nil: it must be the node before, and no other reads it.
func (l *layout) append(n node, of *layer.Append) op {
	h, ok := n.in[0].from.(*projection)
	if !ok || h.appended != nil || h.at != len(l.ops)-1 || l.readers(h.name) != 1 {
		return nil
	}
	h.appended, h.out = of, h.out+of.N
	if !of.Fixed {
		h.tail = vector(of.N)
	}
	return h
}

func (h *projection) params() []*param {
	if h.tail.count == 0 {
		return []*param{&h.weight, &h.bias}
	}
	return []*param{&h.weight, &h.bias, &h.tail}
}

func (h *projection) forward(p *pass, rows int) {
	in, out := p.input(&h.in[0]), p.columns(h)
	for a := range h.dense {
		p.head = kern.Head{Rows: rows, K: h.padded, X: in.data, XRow: in.row, Out: out[a*p.block:],
			W: p.params[h.weight.at+a*h.padded:], Bias: p.params[h.bias.at+a]}
		p.set.Head(&p.head)
	}
	for a := h.dense; a < h.out; a++ {
		x := float32(h.appended.Init)
		if h.tail.count > 0 {
			x = p.params[h.tail.at+a-h.dense]
		}
		column := out[a*p.block:][:p.block]
		for r := range column {
			column[r] = x
		}
	}
}

// backward reads the gradient of the outputs in place of the outputs.
func (h *projection) backward(s *shard, rows int) {
	in, g := s.input(&h.in[0]), s.columns(h)
	// dW[a][j] += Σ_r g[a][r] · in[r][j]
	p := &s.product
	*p = kern.Gemm{M: h.dense, N: h.padded, K: rows, A: g, ARow: s.block, ACol: 1,
		B: in.data, BRow: in.row, BPanel: kern.Panel,
		C: s.grad[h.weight.at:], CRow: h.padded, CPanel: kern.Panel, Add: true}
	s.set.Gemm(p)
	for i := range h.tail.count {
		s.grad[h.tail.at+i] += sum(g[(h.dense+i)*s.block:][:rows])
	}
	for a := range h.dense {
		s.grad[h.bias.at+a] += sum(g[a*s.block : a*s.block+rows])
	}
	if h.in[0].from == nil {
		return
	}
	// g'[r][j] = Σ_a g[a][r] · W[a][j], times the activation's derivative
	*p = kern.Gemm{M: rows, K: h.dense, A: g, ARow: 1, ACol: s.block,
		B: s.params[h.weight.at:], BRow: h.padded, BPanel: kern.Panel}
	s.descend(&h.in[0])
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

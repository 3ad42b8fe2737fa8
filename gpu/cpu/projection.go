package cpu

import "github.com/rlhost/rlhost/gpu/cpu/internal/kern"

// projection is a dense node that a head reads: few outputs, without an activation, each kept as a column of a block of
// rows. Its weights are transposed: output a reads weight[a*padded : (a+1)*padded].
type projection struct {
	node
	weight, bias param
}

func newProjection(n node) *projection {
	h := &projection{node: n, weight: param{size: n.out * n.padded, count: n.width * n.out}, bias: vector(n.out)}
	h.weight.index = func(i int) int { return i%n.out*n.padded + i/n.out }
	return h
}

func (h *projection) params() []*param { return []*param{&h.weight, &h.bias} }

func (h *projection) forward(p *pass, rows int) {
	in, out := p.input(h.in[0].from), p.columns(h)
	for a := range h.out {
		p.head = kern.Head{Rows: rows, K: h.padded, X: in.data, XRow: in.row, Out: out[a*p.block:],
			W: p.params[h.weight.at+a*h.padded:], Bias: p.params[h.bias.at+a]}
		p.set.Head(&p.head)
	}
}

// backward reads the gradient of the outputs in place of the outputs.
func (h *projection) backward(s *shard, rows int) {
	in, g := s.input(h.in[0].from), s.columns(h)
	// dW[a][j] += Σ_r g[a][r] · in[r][j]
	p := &s.product
	*p = kern.Gemm{M: h.out, N: h.padded, K: rows, A: g, ARow: s.block, ACol: 1,
		B: in.data, BRow: in.row, BPanel: kern.Panel,
		C: s.grad[h.weight.at:], CRow: h.padded, CPanel: kern.Panel, Add: true}
	s.set.Gemm(p)
	for a := range h.out {
		s.grad[h.bias.at+a] += sum(g[a*s.block : a*s.block+rows])
	}
	if h.in[0].from == nil {
		return
	}
	// g'[r][j] = Σ_a g[a][r] · W[a][j], times the activation's derivative
	*p = kern.Gemm{M: rows, K: h.out, A: g, ARow: 1, ACol: s.block,
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

package cpu

import "github.com/rlhost/rlhost/gpu/cpu/internal/kern"

// dense is a dense node and the activation that follows it. Its weights are in panels of 16 columns, padded to whole ones.
type dense struct {
	node
	weight param // element (i, 16p+j): p*width*16 + i*16 + j
	bias   param
}

// dense returns the operation of a dense node: a projection if a head reads it.
func (l *layout) dense(n node) op {
	if l.isHead(n.name) {
		l.staged = l.staged || n.in[0].from == nil
		n.padded, n.row = pad(n.width), 0
		return newProjection(n)
	}
	d := &dense{node: n, weight: param{size: n.width * n.padded, count: n.width * n.out}, bias: vector(n.out)}
	d.absorbs = true
	d.weight.index = func(i int) int {
		j := i % n.out
		return j/kern.Panel*n.width*kern.Panel + i/n.out*kern.Panel + j%kern.Panel
	}
	return d
}

// vector is a tensor whose elements lie one after the other.
func vector(n int) param { return param{size: n, count: n, index: func(i int) int { return i }} }

func (d *dense) params() []*param { return []*param{&d.weight, &d.bias} }

func (d *dense) forward(p *pass, rows int) {
	in, out := p.input(&d.in[0]), p.output(&d.node)
	p.product = kern.Gemm{M: rows, N: d.padded, K: d.width, A: in.data, ARow: in.row, ACol: in.col,
		B: p.params[d.weight.at:], BRow: kern.Panel, BPanel: d.width * kern.Panel,
		Bias: p.params[d.bias.at:], C: out.data, CRow: out.row, CPanel: kern.Panel,
		Epilogue: d.activation.forward}
	p.set.Gemm(&p.product)
}

// packed is the size of the transposed weights. The gradient of observations is not needed.
func (d *dense) packed() int {
	if d.in[0].from == nil {
		return 0
	}
	return pad(d.width) * d.out
}

func (d *dense) pack(set kern.Set, params, to []float32) {
	if d.in[0].from == nil {
		return
	}
	t := kern.Transpose{In: d.width, Out: d.out, From: params[d.weight.at:], To: to}
	set.Transpose(&t)
}

func (d *dense) backward(s *shard, rows int) {
	in, g := s.input(&d.in[0]), s.gradient(&d.node)
	s.sums = kern.ColumnSums{Rows: rows, N: d.padded, X: g.data, XRow: g.row, Out: s.grad[d.bias.at:]}
	s.set.ColumnSums(&s.sums)
	// dW[j][o] += Σ_r in[r][j] · g[r][o]
	p := &s.product
	*p = kern.Gemm{M: d.width, N: d.padded, K: rows, A: in.data, ARow: in.col, ACol: in.row,
		B: g.data, BRow: g.row, BPanel: kern.Panel, Strip: s.strip,
		C: s.grad[d.weight.at:], CRow: kern.Panel, CPanel: d.width * kern.Panel, Add: true}
	s.set.Gemm(p)
	if d.in[0].from == nil {
		return
	}
	// g'[r][j] = Σ_o g[r][o] · W[j][o], times the activation's derivative
	*p = kern.Gemm{M: rows, K: d.out, A: g.data, ARow: g.row, ACol: 1,
		B: s.back[d.at], BRow: kern.Panel, BPanel: d.out * kern.Panel}
	s.descend(&d.in[0])
}

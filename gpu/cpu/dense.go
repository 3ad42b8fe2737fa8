package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// dense is a dense node and the activation behind it. Its weights are in panels of 16 columns, padded to whole ones.
type dense struct {
	node
	weight int // element (i, 16p+j): weight + p*width*16 + i*16 + j
	bias   int
}

// dense adds the operation of a dense node: a projection if a head reads it.
func (l *layout) dense(n *policy.Node, d *layer.Dense) bool {
	in, ok := l.names[n.In[0]]
	if !ok || in != nil && in.common().row == 0 {
		return false // reads a head
	}
	width := l.obs
	if in != nil {
		width = in.common().out
	}
	base := node{in: in, width: width, out: d.Out}
	if l.isHead(n.Name) {
		l.staged = l.staged || in == nil
		base.padded = pad(width)
		l.add(n.Name, &projection{node: base})
		return true
	}
	base.row, base.padded = apart(d.Out), pad(d.Out)
	l.add(n.Name, &dense{node: base})
	return true
}

func (d *dense) lay(take func(n int) int)     { d.weight = take(d.width * d.padded) }
func (d *dense) layBias(take func(n int) int) { d.bias = take(d.padded) }

func (d *dense) tensors(add func(at int)) {
	for i := range d.width {
		for j := range d.out {
			add(d.weight + j/kern.Panel*d.width*kern.Panel + i*kern.Panel + j%kern.Panel)
		}
	}
	for j := range d.out {
		add(d.bias + j)
	}
}

func (d *dense) spans() []span {
	return []span{{d.weight, d.weight + d.width*d.padded}, {d.bias, d.bias + d.padded}}
}

func (d *dense) forward(p *pass, rows int) {
	in, out := p.input(d.in), p.input(d)
	p.product = kern.Gemm{M: rows, N: d.padded, K: d.width, A: in.data, ARow: in.row, ACol: in.col,
		B: p.params[d.weight:], BRow: kern.Panel, BPanel: d.width * kern.Panel,
		Bias: p.params[d.bias:], C: out.data, CRow: out.row, CPanel: kern.Panel,
		Epilogue: d.activation.forward}
	p.set.Gemm(&p.product)
}

// packed is the size of the transposed weights. The gradient of observations is not needed.
func (d *dense) packed() int {
	if d.in == nil {
		return 0
	}
	return pad(d.width) * d.out
}

func (d *dense) pack(set kern.Set, params, to []float32) {
	if d.in == nil {
		return
	}
	t := kern.Transpose{In: d.width, Out: d.out, From: params[d.weight:], To: to}
	set.Transpose(&t)
}

func (d *dense) backward(s *shard, rows int) {
	in, g := s.input(d.in), s.gradient(d)
	s.sums = kern.ColumnSums{Rows: rows, N: d.padded, X: g.data, XRow: g.row, Out: s.grad[d.bias:]}
	s.set.ColumnSums(&s.sums)
	// dW[j][o] += Σ_r in[r][j] · g[r][o]
	p := &s.product
	*p = kern.Gemm{M: d.width, N: d.padded, K: rows, A: in.data, ARow: in.col, ACol: in.row,
		B: g.data, BRow: g.row, BPanel: kern.Panel, Strip: s.strip,
		C: s.grad[d.weight:], CRow: kern.Panel, CPanel: d.width * kern.Panel, Add: true}
	s.set.Gemm(p)
	if d.in == nil {
		return
	}
	// g'[r][j] = Σ_o g[r][o] · W[j][o], times the activation's derivative
	*p = kern.Gemm{M: rows, K: d.out, A: g.data, ARow: g.row, ACol: 1,
		B: s.back[d.at], BRow: kern.Panel, BPanel: d.out * kern.Panel}
	s.descend(&d.node)
}

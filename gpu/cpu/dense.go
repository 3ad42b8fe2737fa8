package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// dense is a dense node and the activation that follows it. Its weights are in panels of 16 columns, padded to whole ones.
type dense struct {
	node
	weight plan.Tensor // element (i, 16p+j): p*width*16 + i*16 + j
	bias   plan.Tensor
}

// dense returns the operation of a dense node: a projection if a head reads it.
func (l *layout) dense(n node) op {
	if n.Head {
		l.staged = l.staged || n.In[0].From == nil
		return newProjection(n)
	}
	d := &dense{node: n, weight: plan.Tensor{Size: n.Width * n.padded, Count: n.Width * n.Out}, bias: plan.Flat(n.Out)}
	d.weight.Index = func(i int) int {
		j := i % n.Out
		return j/kern.Panel*n.Width*kern.Panel + i/n.Out*kern.Panel + j%kern.Panel
	}
	return d
}

func (d *dense) params() []*plan.Tensor { return []*plan.Tensor{&d.weight, &d.bias} }

func (d *dense) forward(p *pass, rows int) {
	in, out := p.input(&d.In[0]), p.output(&d.node)
	p.product = kern.Gemm{M: rows, N: d.padded, K: d.Width, A: in.data, ARow: in.row, ACol: in.col,
		B: p.params[d.weight.At:], BRow: kern.Panel, BPanel: d.Width * kern.Panel,
		Bias: p.params[d.bias.At:], C: out.data, CRow: out.row, CPanel: kern.Panel,
		Epilogue: d.activation.forward}
	p.set.Gemm(&p.product)
}

// packed is the size of the transposed weights. The gradient of observations is not needed.
func (d *dense) packed() int {
	if d.In[0].From == nil {
		return 0
	}
	return pad(d.Width) * d.Out
}

func (d *dense) pack(set kern.Set, params, to []float32) {
	if d.In[0].From == nil {
		return
	}
	t := kern.Transpose{In: d.Width, Out: d.Out, From: params[d.weight.At:], To: to}
	set.Transpose(&t)
}

func (d *dense) backward(s *shard, rows int) {
	in, g := s.input(&d.In[0]), s.gradient(&d.node)
	s.sums = kern.ColumnSums{Rows: rows, N: d.padded, X: g.data, XRow: g.row, Out: s.grad[d.bias.At:]}
	s.set.ColumnSums(&s.sums)
	// dW[j][o] += Σ_r in[r][j] · g[r][o]
	p := &s.product
	*p = kern.Gemm{M: d.Width, N: d.padded, K: rows, A: in.data, ARow: in.col, ACol: in.row,
		B: g.data, BRow: g.row, BPanel: kern.Panel, Strip: s.strip,
		C: s.grad[d.weight.At:], CRow: kern.Panel, CPanel: d.Width * kern.Panel, Add: true}
	s.set.Gemm(p)
	if d.In[0].From == nil {
		return
	}
	// g'[r][j] = Σ_o g[r][o] · W[j][o], times the activation's derivative
	*p = kern.Gemm{M: rows, K: d.Out, A: g.data, ARow: g.row, ACol: 1,
		B: s.back[d.At], BRow: kern.Panel, BPanel: d.Out * kern.Panel}
	s.descend(&d.In[0])
}

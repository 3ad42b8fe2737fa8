package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

// pass computes a network on a block of rows at a time: all layers of one block while it is in the cache.
type pass struct {
	*layout
	set        kern.Set
	activation activation
	params     []float32 // the backend's vector
	block      int       // rows, a multiple of kern.Lanes

	obs     []float32   // [block][pad(Obs)] or [block][Obs]: observations that cannot be read in place
	hidden  [][]float32 // per layer [encoders][block][out], rows apart
	logits  []float32   // [Actions][block]
	value   []float32   // [block]
	scratch []float32   // [Actions][kern.Lanes]
	product kern.Gemm
	output  kern.Head
}

// matrix is a block of rows of float32 where they lie; strides count elements.
type matrix struct {
	data     []float32
	row, col int
}

func newPass(set kern.Set, l *layout, params []float32) *pass {
	block := blockRows
	p := &pass{layout: l, set: set, activation: activationOf(l.net.Activation), block: block, params: params}
	p.obs = aligned(block * pad(l.net.Obs))
	for _, y := range l.layers {
		p.hidden = append(p.hidden, aligned(l.encoders*block*y.row))
	}
	p.logits, p.value = aligned(l.net.Actions*block), aligned(block)
	p.scratch = aligned(l.net.Actions * kern.Lanes)
	return p
}

// blockRows is how many rows go through the layers together: few enough for the second-level cache with layers of
// some hundred columns, and whole tiles of the AVX2 kernels.
const blockRows = 96

// activation is what products do with their results on the way forward and back.
type activation struct{ forward, backward kern.Epilogue }

func activationOf(a policy.Activation) activation {
	switch a {
	case policy.ReLU:
		return activation{kern.ReLU, kern.DReLU}
	case policy.ELU:
		return activation{kern.ELU, kern.DELU}
	}
	return activation{kern.Tanh, kern.DTanh}
}

// stage copies rows whose observations must be normalised, or that a head reads directly, and returns the copy.
func (p *pass) stage(x matrix, rows int, mean, scale []float32) matrix {
	width := p.net.Obs
	if len(p.layers) == 0 {
		width = p.width
	}
	for r := range rows {
		policy.NormalizeRow(p.obs[r*width:r*width+p.net.Obs], x.data[r*x.row:], x.col, mean, scale)
	}
	return matrix{p.obs, width, 1}
}

// forward computes values into value and, if act is set, logits. The rows of x are observations as the network
// takes them.
func (p *pass) forward(x matrix, rows int, act bool, value []float32) {
	first := 0 // encoder: the critic alone needs only its own
	if !act {
		first = p.criticHead.encoder
	}
	for e := first; e < p.encoders; e++ {
		in := x
		for i := range p.layers {
			p.dense(i, e, in, rows)
			in = p.activations(p.hidden, i, e)
		}
	}
	if act {
		for a := range p.net.Actions {
			p.head(&p.actorHead, a, x, rows, p.logits[a*p.block:])
		}
	}
	p.head(&p.criticHead, 0, x, rows, value)
}

// dense computes layer i of encoder e.
func (p *pass) dense(i, e int, in matrix, rows int) {
	y, out := &p.layers[i], p.activations(p.hidden, i, e)
	p.product = kern.Gemm{M: rows, N: y.out, K: y.in, A: in.data, ARow: in.row, ACol: in.col,
		B: p.params[y.weight+e*y.in*y.out:], BRow: kern.Panel, BPanel: y.in * kern.Panel,
		Bias: p.params[y.bias+e*y.out:], C: out.data, CRow: out.row, CPanel: kern.Panel,
		Epilogue: p.activation.forward}
	p.set.Gemm(&p.product)
}

// activations returns the block of layer i of encoder e in hidden, or in the learner's delta.
func (p *pass) activations(of [][]float32, i, e int) matrix {
	row := p.layers[i].row
	return matrix{of[i][e*p.block*row : (e+1)*p.block*row], row, 1}
}

func (p *pass) head(h *head, a int, x matrix, rows int, out []float32) {
	in := p.headInput(h, x)
	p.output = kern.Head{Rows: rows, K: p.width, X: in.data, XRow: in.row, Out: out,
		W: p.params[h.weight+a*p.width:], Bias: p.params[h.bias+a]}
	p.set.Head(&p.output)
}

// headInput is what a head reads: its encoder's last layer, or the observations.
func (p *pass) headInput(h *head, x matrix) matrix {
	if len(p.layers) == 0 {
		return x
	}
	return p.activations(p.hidden, len(p.layers)-1, h.encoder)
}

package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

// pass computes a network on a block of rows at a time: all layers of one block while it is in the cache.
type pass struct {
	*layout
	set    kern.Set
	params []float32 // the backend's vector
	block  int       // rows, a multiple of kern.Lanes

	obs     []float32   // [block][pad(Obs)] or [block][Obs]: observations that cannot be read in place
	hidden  [][]float32 // per layer [block][encoders][out], rows apart
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

func newPass(set kern.Set, l *layout, block int) *pass {
	p := &pass{layout: l, set: set, block: block, params: aligned(l.size)}
	p.obs = aligned(block * pad(l.net.Obs))
	for _, y := range l.layers {
		p.hidden = append(p.hidden, aligned(block*y.row))
	}
	p.logits, p.value = aligned(l.net.Actions*block), aligned(block)
	p.scratch = aligned(l.net.Actions * kern.Lanes)
	return p
}

// blockRows chooses how many rows go through the layers together: a whole number of tiles of every kernel set.
func blockRows(l *layout) int { return 96 }

var epilogues = map[policy.Activation]struct{ forward, backward kern.Epilogue }{
	policy.Tanh: {kern.Tanh, kern.DTanh},
	policy.ReLU: {kern.ReLU, kern.DReLU},
	policy.ELU:  {kern.ELU, kern.DELU},
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
	for i, y := range p.layers {
		g := &p.product
		*g = kern.Gemm{M: rows, K: y.in, BRow: kern.Panel, BPanel: y.in * kern.Panel,
			CRow: y.row, CPanel: kern.Panel, Epilogue: epilogues[p.net.Activation].forward}
		if i == 0 { // one product for all encoders
			g.A, g.ARow, g.ACol = x.data, x.row, x.col
			p.multiply(i, first, p.encoders-first)
			continue
		}
		above := p.layers[i-1].out
		for e := first; e < p.encoders; e++ {
			g.A, g.ARow, g.ACol = p.hidden[i-1][e*above:], p.layers[i-1].row, 1
			p.multiply(i, e, 1)
		}
	}
	if act {
		for a := range p.net.Actions {
			p.head(&p.actorHead, a, x, rows, p.logits[a*p.block:])
		}
	}
	p.head(&p.criticHead, 0, x, rows, value)
}

// multiply runs the prepared product for count encoders of layer i, from encoder e on.
func (p *pass) multiply(i, e, count int) {
	y, g := &p.layers[i], &p.product
	g.N = count * y.out
	g.B = p.params[y.weight+e*y.in*y.out:]
	g.Bias = p.params[y.bias+e*y.out:]
	g.C = p.hidden[i][e*y.out:]
	p.set.Gemm(g)
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
	last := len(p.layers) - 1
	return matrix{p.hidden[last][h.encoder*p.width:], p.layers[last].row, 1}
}

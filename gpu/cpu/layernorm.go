package cpu

import "github.com/rlhost/rlhost/gpu/cpu/internal/kern"

// normed is a layer norm: of each run of the last axis.
type normed struct {
	node
	weight, bias param
	n            int // elements of the last axis
}

func newNormed(n node) op {
	last := n.shape[len(n.shape)-1]
	return &normed{node: n, weight: vector(last), bias: vector(last), n: last}
}

func (o *normed) params() []*param { return []*param{&o.weight, &o.bias} }

// room has a row where it does not lie in one piece.
func (o *normed) room() int { return o.out }

// input returns a row of what the operation reads.
func (o *normed) input(p *pass, r int) []float32 {
	in := p.input(&o.in[0])
	if in.col == 1 {
		return in.data[r*in.row:][:o.out]
	}
	for i := range p.room[o.at] {
		p.room[o.at][i] = in.data[r*in.row+i*in.col]
	}
	return p.room[o.at]
}

func (o *normed) forward(p *pass, rows int) {
	out := p.output(o)
	for r := range rows {
		p.norm = kern.Norm{Rows: o.out / o.n, N: o.n, X: o.input(p, r), Weight: p.params[o.weight.at:][:o.n],
			Bias: p.params[o.bias.at:][:o.n], Out: out.data[r*out.row:]}
		p.set.Norm(&p.norm)
	}
}

func (o *normed) backward(s *shard, rows int) {
	e, g := &o.in[0], s.gradient(o)
	var below matrix
	if e.from != nil {
		below = s.below(e, rows)
	}
	for r := range rows {
		s.norm = kern.Norm{Rows: o.out / o.n, N: o.n, X: o.input(s.pass, r), Weight: s.params[o.weight.at:][:o.n],
			D: g.data[r*g.row:], DWeight: s.grad[o.weight.at:][:o.n], DBias: s.grad[o.bias.at:][:o.n]}
		if e.from != nil {
			s.norm.DX = below.data[r*below.row:]
		}
		s.set.Norm(&s.norm)
	}
	if e.from != nil {
		s.passed(e, rows)
	}
}

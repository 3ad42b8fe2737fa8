package cpu

import "github.com/rlhost/rlhost/gpu/cpu/internal/kern"

// normed is a layer norm, of each run of the last axis, and the activation that follows it.
type normed struct {
	node
	weight, bias param
	n            int // elements of the last axis
}

func newNormed(n node) op {
	last := n.shape[len(n.shape)-1]
	n.absorbs = true
	return &normed{node: n, weight: vector(last), bias: vector(last), n: last}
}

func (o *normed) params() []*param { return []*param{&o.weight, &o.bias} }

// room has the moments of a block of rows, then a row where it does not lie in one piece.
func (o *normed) room() int { return o.moments() + o.out }

// moments is their size: two for each run of each row.
func (o *normed) moments() int { return 2 * blockRows * o.runs() }

func (o *normed) runs() int { return o.out / o.n }

// begin describes a call for row r, or for all rows where each is one run.
func (o *normed) begin(p *pass, r, rows int) (n *kern.Norm, next int) {
	in, n := p.input(&o.in[0]), &p.norm
	*n = kern.Norm{Rows: o.runs(), N: o.n, XRow: o.n, OutRow: o.n, DRow: o.n, DXRow: o.n, Weight: p.params[o.weight.at:][:o.n],
		Bias: p.params[o.bias.at:][:o.n], Moments: p.room[o.at][2*r*o.runs() : o.moments()]}
	if in.col == 1 {
		n.X = in.data[r*in.row:]
		if o.runs() == 1 {
			n.Rows, n.XRow, n.OutRow, n.DRow, n.DXRow = rows, in.row, o.row, o.row, in.row
			return n, rows
		}
		return n, r + 1
	}
	n.X = p.room[o.at][o.moments():]
	for i := range o.out {
		n.X[i] = in.data[r*in.row+i*in.col]
	}
	return n, r + 1
}

func (o *normed) forward(p *pass, rows int) {
	out := p.output(&o.node)
	for r := 0; r < rows; {
		n, next := o.begin(p, r, rows)
		n.Out = out.data[r*out.row:]
		p.set.Norm(n)
		r = next
	}
	if o.activation.forward != kern.None {
		p.apply(o.activation.forward, out, nil, rows, o.padded)
	}
}

func (o *normed) backward(s *shard, rows int) {
	e, g := &o.in[0], s.gradient(&o.node)
	var below matrix
	if e.from != nil {
		below = s.below(e, rows)
	}
	for r := 0; r < rows; {
		n, next := o.begin(s.pass, r, rows)
		n.D, n.DWeight, n.DBias = g.data[r*g.row:], s.grad[o.weight.at:][:o.n], s.grad[o.bias.at:][:o.n]
		if e.from != nil {
			n.DX = below.data[r*below.row:]
		}
		s.set.Norm(n)
		r = next
	}
	if e.from != nil {
		s.passed(e, rows)
	}
}

package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// normed is a layer norm, of each run of the last axis, and the activation that follows it.
type normed struct {
	node
	weight, bias plan.Tensor
	n            int // elements of the last axis
}

func newNormed(n node) op {
	last := n.Shape[len(n.Shape)-1]
	return &normed{node: n, weight: plan.Flat(last), bias: plan.Flat(last), n: last}
}

func (o *normed) params() []*plan.Tensor { return []*plan.Tensor{&o.weight, &o.bias} }

// room has the moments of a block of rows, then a row that does not lie in one piece.
func (o *normed) room() int { return o.moments() + o.Out }

// moments is their size: two for each run of each row.
func (o *normed) moments() int { return 2 * blockRows * o.runs() }

func (o *normed) runs() int { return o.Out / o.n }

// begin describes a call for row r, or for all rows where each is one run.
func (o *normed) begin(p *pass, r, rows int) (n *kern.Norm, next int) {
	in, n := p.input(&o.In[0]), &p.norm
	*n = kern.Norm{Rows: o.runs(), N: o.n, XRow: o.n, OutRow: o.n, DRow: o.n, DXRow: o.n, Weight: p.params[o.weight.At:][:o.n],
		Bias: p.params[o.bias.At:][:o.n], Moments: p.room[o.At][2*r*o.runs() : o.moments()]}
	if in.col == 1 {
		n.X = in.data[r*in.row:]
		if o.runs() == 1 {
			n.Rows, n.XRow, n.OutRow, n.DRow, n.DXRow = rows, in.row, o.row, o.row, in.row
			return n, rows
		}
		return n, r + 1
	}
	n.X = p.room[o.At][o.moments():]
	for i := range o.Out {
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
	e, g := &o.In[0], s.gradient(&o.node)
	var below matrix
	if e.From != nil {
		below = s.below(e, rows)
	}
	for r := 0; r < rows; {
		n, next := o.begin(s.pass, r, rows)
		n.D, n.DWeight, n.DBias = g.data[r*g.row:], s.grad[o.weight.At:][:o.n], s.grad[o.bias.At:][:o.n]
		if e.From != nil {
			n.DX = below.data[r*below.row:]
		}
		s.set.Norm(n)
		r = next
	}
	if e.From != nil {
		s.passed(e, rows)
	}
}

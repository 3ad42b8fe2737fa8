package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// activation is applied by kernels to their results: its function in the forward pass, its derivative in the backward pass.
type activation struct{ forward, backward kernels.Epilogue }

// activated copies its input and applies the activation. Its readers apply the derivative, as they do for a product.
type activated struct{ node }

func (a *activated) forward(p *pass) func(rows int) {
	c := p.move(a.Out)
	c.args.Epilogue = a.activation.forward
	return func(rows int) {
		in, out := p.input(&a.In[0]), p.output(&a.node)
		c.args.From, c.args.FromRow, c.args.To, c.args.ToRow = in.Data, in.Row, out.Data, out.Row
		p.moveRows(c, rows)
	}
}

func (a *activated) backward(g *gradient) func(rows int) {
	return g.accumulate(&a.In[0], g.gradientOf(&a.node), a.Out)
}

// accumulate prepares that the first elements of a gradient's rows are added to that of an input of as many.
func (g *gradient) accumulate(e *plan.Edge, own kernels.Matrix, elems int) func(rows int) {
	if e.From == nil {
		return func(int) {}
	}
	c, to, passed := g.move(elems), g.gradientOf(g.nodes[e.From.At]), g.passed(e)
	c.args.From, c.args.FromRow, c.args.To, c.args.ToRow = own.Data, own.Row, to.Data, to.Row
	if !e.First {
		c.args.Add = 1
	}
	return func(rows int) {
		g.moveRows(c, rows)
		passed(rows)
	}
}

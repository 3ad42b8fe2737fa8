package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// activation is applied by kernels to their results: its function in the forward pass, its derivative in the backward pass.
type activation struct{ forward, backward kernels.Epilogue }

// activation makes an activation part of the operation that it follows, where nothing else reads that, and otherwise a copy that
// has the activation. One that it does not know is nil.
func (l *layout) activation(n node, a *layer.Activation) op {
	f, ok := map[layer.Func]activation{layer.ReLU: {kernels.ReLU, kernels.DReLU}, layer.ELU: {kernels.ELU, kernels.DELU},
		layer.Tanh: {kernels.Tanh, kernels.DTanh}}[a.Func]
	if !ok {
		return nil
	}
	if from := n.in[0].from; from != nil {
		if d := from.common(); d.absorbs && d.activation.forward == kernels.None && l.readers(d.name) == 1 {
			d.activation = f
			return from
		}
	}
	n.activation = f
	return &activated{n}
}

// activated copies its input and applies the activation. Its readers apply the derivative, as they do for a product.
type activated struct{ node }

func (a *activated) forward(p *pass) func(rows int) {
	c := p.move(a.out)
	c.args.Epilogue = a.activation.forward
	return func(rows int) {
		in, out := p.input(&a.in[0]), p.output(&a.node)
		c.args.From, c.args.FromRow, c.args.To, c.args.ToRow = in.Data, in.Row, out.Data, out.Row
		p.moveRows(c, rows)
	}
}

func (a *activated) backward(g *gradient) func(rows int) {
	return g.accumulate(&a.in[0], g.gradientOf(&a.node), a.out)
}

// accumulate prepares that the first elements of a gradient's rows are added to that of an input of as many.
func (g *gradient) accumulate(e *edge, own kernels.Matrix, elems int) func(rows int) {
	if e.from == nil {
		return func(int) {}
	}
	c, to, passed := g.move(elems), g.gradientOf(e.from.common()), g.passed(e)
	c.args.From, c.args.FromRow, c.args.To, c.args.ToRow = own.Data, own.Row, to.Data, to.Row
	if !e.first {
		c.args.Add = 1
	}
	return func(rows int) {
		g.moveRows(c, rows)
		passed(rows)
	}
}

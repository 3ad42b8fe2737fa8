package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// dense is a dense node and the activation that follows it.
type dense struct {
	node
	weight, bias plan.Tensor
}

// newDense returns the operation of a dense: a projection if a head reads it.
func newDense(n node) op {
	if n.Head {
		return newProjection(n)
	}
	return &dense{n, plan.Flat(n.Width * n.Out), plan.Flat(n.Out)}
}

func (d *dense) params() []*plan.Tensor { return []*plan.Tensor{&d.weight, &d.bias} }

func (d *dense) forward(p *pass) func(rows int) {
	run := p.product(p.param(&d.weight), p.param(&d.bias), d.Width, d.Out, d.activation.forward)
	return func(rows int) { run(p.input(&d.In[0]), p.output(&d.node), rows) }
}

// product prepares x·weight + bias with an epilogue, of a weight [depth][columns].
func (p *pass) product(weight, bias kernels.Address, depth, columns int, e kernels.Epilogue) func(x, out kernels.Matrix, rows int) {
	c := prepare(&p.owner, kernels.DenseKernel)
	c.args.B, c.args.Bias, c.args.Control = kernels.Matrix{Data: weight, Row: 1, Column: int32(columns)}, bias, p.control
	c.args.Columns, c.args.Depth, c.args.Start, c.args.Epilogue = int32(columns), int32(depth), kernels.Bias, e
	return func(x, out kernels.Matrix, rows int) {
		c.args.A, c.args.C, c.args.Rows = x, out, int32(rows)
		p.work.launch(c.Launch, kernels.Tiles(rows, columns))
	}
}

func (d *dense) backward(g *gradient) func(rows int) {
	biases := sums(g, g.part(&d.bias), d.Out)
	weights := outer(g, kernels.Matrix{Data: g.part(&d.weight), Row: int32(d.Out), Column: 1}, d.Width, d.Out)
	on := g.descend(&d.In[0], kernels.Matrix{Data: g.param(&d.weight), Row: int32(d.Out), Column: 1}, d.Out)
	own := g.gradientOf(&d.node)
	return func(rows int) {
		biases(own, rows)
		weights(g.input(&d.In[0]), own, rows)
		on(own, rows)
	}
}

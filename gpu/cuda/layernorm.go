package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
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

func (o *normed) runs() int { return o.Out / o.n }

func (o *normed) rowsOfEach() int { return o.runs() }

// describe fills in a norm's arguments for both directions.
func (o *normed) describe(p *pass, a *kernels.Norm, moments kernels.Address) {
	a.Weight, a.Bias, a.Moments, a.Control = p.param(&o.weight), p.param(&o.bias), moments, p.control
	a.N, a.Groups = int32(o.n), int32(o.runs())
}

func (o *normed) forward(p *pass) func(rows int) {
	c, moments := prepare(&p.owner, kernels.LayerNormKernel), p.floats(2*p.capacity*o.runs())
	o.describe(p, c.args, moments)
	c.args.Epilogue = o.activation.forward
	p.moments[o] = moments
	return func(rows int) {
		in, out := p.input(&o.In[0]), p.output(&o.node)
		c.args.X, c.args.XRow, c.args.Out, c.args.OutRow, c.args.Rows = in.Data, in.Row, out.Data, out.Row, int32(rows*o.runs())
		p.work.launch(c.Launch, kernels.Halves(rows*o.runs()))
	}
}

func (o *normed) backward(g *gradient) func(rows int) {
	e, own := &o.In[0], g.gradientOf(&o.node)
	learn := prepare(&g.owner, kernels.LayerNormOuterKernel)
	n := &learn.args.Norm
	o.describe(g.pass, n, g.moments[o])
	n.D, n.DRow = own.Data, own.Row
	learn.args.DWeight, learn.args.DBias, learn.args.Part = g.part(&o.weight), g.part(&o.bias), int64(g.size)
	back, passed := prepare(&g.owner, kernels.LayerNormBackKernel), g.passed(e)
	return func(rows int) {
		in := g.input(e)
		n.X, n.XRow, n.Rows = in.Data, in.Row, int32(rows*o.runs())
		run, _ := runOf(rows * o.runs())
		learn.args.Parts, learn.args.Run = int32(g.count), int32(run)
		grid := kernels.Blocks(o.n)
		grid.Y = g.count
		g.work.launch(learn.Launch, grid)
		if e.From == nil {
			return
		}
		g.below(e, rows)
		to := g.gradientOf(g.nodes[e.From.At])
		*back.args = *n
		back.args.DX, back.args.DXRow = to.Data, to.Row
		g.work.launch(back.Launch, kernels.Halves(rows*o.runs()))
		passed(rows)
	}
}

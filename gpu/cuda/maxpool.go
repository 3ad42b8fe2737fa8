package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// maxPool is a pool. The backward pass finds the largest elements again.
type maxPool struct {
	node
	*layer.MaxPool
}

func newMaxPool(n node, of *layer.MaxPool) op { return &maxPool{n, of} }

// prepare makes calls of a pool's kernel.
func (m *maxPool) prepare(p *pass, k kernels.Kernel[kernels.Pool]) call[kernels.Pool] {
	c, in := prepare(&p.owner, k), m.In[0].Shape
	c.args.Control = p.control
	c.args.Height, c.args.Width, c.args.Channels = int32(in[0]), int32(in[1]), int32(in[2])
	c.args.Rows, c.args.Columns = int32(m.node.Shape[0]), int32(m.node.Shape[1])
	c.args.Kernel, c.args.Stride, c.args.Margin = int32(m.Kernel), int32(m.Stride), int32(m.Pad)
	return c
}

func (m *maxPool) forward(p *pass) func(rows int) {
	c := m.prepare(p, kernels.PoolKernel)
	return func(rows int) {
		in, out := p.input(&m.In[0]), p.output(&m.node)
		c.args.X, c.args.XImage, c.args.Out, c.args.OutImage, c.args.Images = in.Data, in.Row, out.Data, out.Row, int32(rows)
		p.work.launch(c.Launch, kernels.Blocks(rows*m.Out))
	}
}

func (m *maxPool) backward(g *gradient) func(rows int) {
	e := &m.In[0]
	if e.From == nil {
		return func(int) {}
	}
	c, own, to, passed := m.prepare(g.pass, kernels.PoolBackKernel), g.gradientOf(&m.node), g.gradientOf(g.nodes[e.From.At]), g.passed(e)
	c.args.D, c.args.DImage, c.args.DX, c.args.DXImage = own.Data, own.Row, to.Data, to.Row
	return func(rows int) {
		in := g.input(e)
		c.args.X, c.args.XImage, c.args.Images = in.Data, in.Row, int32(rows)
		g.below(e, rows)
		g.work.launch(c.Launch, kernels.Blocks(rows*m.Width))
		passed(rows)
	}
}

package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// conv2d is a convolution and the activation that follows it: products that read windows of the images where they lie.
type conv2d struct {
	node
	*layer.Conv2D
	weight, bias plan.Tensor
	depth        int // elements of a window
}

func newConv2D(n node, of *layer.Conv2D) op {
	c := &conv2d{node: n, Conv2D: of, depth: of.Kernel * of.Kernel * n.In[0].Shape[2], bias: plan.Flat(of.Out)}
	c.weight = plan.Flat(c.depth * of.Out)
	return c
}

func (c *conv2d) params() []*plan.Tensor { return []*plan.Tensor{&c.weight, &c.bias} }

// windows is how many there are in an image.
func (c *conv2d) windows() int { return c.node.Shape[0] * c.node.Shape[1] }

func (c *conv2d) rowsOfEach() int { return c.windows() }

// windowsOf returns the windows of images in rows.
func (c *conv2d) windowsOf(m kernels.Matrix) kernels.Windows {
	in := c.In[0].Shape
	return kernels.Windows{Data: m.Data, Image: int64(m.Row), Height: int32(in[0]), Width: int32(in[1]), Channels: int32(in[2]),
		Rows: int32(c.node.Shape[0]), Columns: int32(c.node.Shape[1]), KernelColumns: int32(c.Kernel), Stride: int32(c.Stride), Top: int32(-c.Pad), Left: int32(-c.Pad)}
}

// places returns the places of the outputs in rows.
func (c *conv2d) places(m kernels.Matrix) kernels.Pixels {
	return kernels.Pixels{Data: m.Data, Image: int64(m.Row), Rows: int32(c.node.Shape[0]), Columns: int32(c.node.Shape[1]),
		Line: int32(c.node.Shape[1] * c.Out), Step: int32(c.Out)}
}

func (c *conv2d) forward(p *pass) func(rows int) {
	k := prepare(&p.owner, kernels.ConvKernel)
	k.args.B, k.args.Bias, k.args.Control = kernels.Matrix{Data: p.param(&c.weight), Row: 1, Column: int32(c.Out)}, p.param(&c.bias), p.control
	k.args.Columns, k.args.Depth, k.args.Start, k.args.Epilogue = int32(c.Out), int32(c.depth), kernels.Bias, c.activation.forward
	return func(rows int) {
		k.args.A, k.args.C, k.args.Rows = c.windowsOf(p.input(&c.In[0])), c.places(p.output(&c.node)), int32(rows*c.windows())
		p.work.launch(k.Launch, kernels.Tiles(rows*c.windows(), c.Out))
	}
}

func (c *conv2d) backward(g *gradient) func(rows int) {
	e, own := &c.In[0], c.places(g.gradientOf(&c.node))
	weights, biases := prepare(&g.owner, kernels.ConvOuterKernel), prepare(&g.owner, kernels.ConvSumsKernel)
	w, b := weights.args, biases.args
	w.B, w.C = own, kernels.Matrix{Data: g.part(&c.weight), Row: int32(c.Out), Column: 1}
	w.Control, w.Part, w.Height, w.Width = g.control, int64(g.size), int32(c.depth), int32(c.Out)
	b.X, b.C, b.Control, b.Part, b.Columns = own, g.part(&c.bias), g.control, int64(g.size), int32(c.Out)
	on := c.descend(g)
	return func(rows int) {
		n := rows * c.windows()
		run, _ := runOf(n)
		w.A, w.Rows, w.Parts, w.Run = c.windowsOf(g.input(e)), int32(n), int32(g.count), int32(run)
		grid := kernels.Tiles(c.depth, c.Out)
		grid.Z = g.count
		g.work.launch(weights.Launch, grid)
		b.Rows, b.Parts, b.Run = int32(n), int32(g.count), int32(run)
		g.work.launch(biases.Launch, driver.Dim{X: kernels.Blocks(c.Out).X, Y: g.count})
		on(rows)
	}
}

// descend prepares that the gradient is passed on: for the pixels of each phase a product of the gradient's windows.
func (c *conv2d) descend(g *gradient) func(rows int) {
	e := &c.In[0]
	if e.From == nil {
		return func(int) {}
	}
	ways := []func(rows int){func(rows int) { g.below(e, rows) }}
	for a := range c.Stride {
		for b := range c.Stride {
			if phase := c.phase(g, a, b); phase != nil {
				ways = append(ways, phase)
			}
		}
	}
	return all(append(ways, g.passed(e)))
}

// along returns the pixels a, a+Stride and so on of the padded image, along an axis of so many pixels: the first within the image,
// counted in strides, how many there are, and how many rows of the kernel they meet.
func (c *conv2d) along(a, size int) (first, count, taps int) {
	first = (max(c.Pad-a, 0) + c.Stride - 1) / c.Stride
	if end := size + c.Pad - 1 - a; end >= 0 {
		count = max(0, end/c.Stride-first+1)
	}
	return first, count, max(0, (c.Kernel-a+c.Stride-1)/c.Stride)
}

// phase prepares the product of the pixels of phase a, b, or returns nil where there are none or no window has them.
func (c *conv2d) phase(g *gradient, a, b int) func(rows int) {
	in, own, to := c.In[0].Shape, g.gradientOf(&c.node), g.gradientOf(g.nodes[c.In[0].From.At])
	top, rows, high := c.along(a, in[0])
	left, columns, wide := c.along(b, in[1])
	if rows == 0 || columns == 0 || high == 0 || wide == 0 {
		return nil
	}
	k := prepare(&g.owner, kernels.ConvBackKernel)
	k.args.A = kernels.Windows{Data: own.Data, Image: int64(own.Row), Height: int32(c.node.Shape[0]), Width: int32(c.node.Shape[1]), Channels: int32(c.Out),
		Rows: int32(rows), Columns: int32(columns), KernelColumns: int32(wide), Stride: 1, Top: int32(top - high + 1), Left: int32(left - wide + 1)}
	k.args.B = kernels.Taps{Weight: g.param(&c.weight), Kernel: int32(c.Kernel), Channels: int32(in[2]), Outputs: int32(c.Out), Row: int32(c.Out),
		Stride: int32(c.Stride), Top: int32(a), Left: int32(b), Rows: int32(high), Columns: int32(wide)}
	first := (c.Stride*top+a-c.Pad)*in[1] + c.Stride*left + b - c.Pad
	k.args.C = kernels.Pixels{Data: at(to.Data, first*in[2]), Image: int64(to.Row), Rows: int32(rows), Columns: int32(columns),
		Line: int32(c.Stride * in[1] * in[2]), Step: int32(c.Stride * in[2])}
	k.args.Control, k.args.Columns, k.args.Depth, k.args.Start = g.control, int32(in[2]), int32(high*wide*c.Out), kernels.Add
	return func(images int) {
		k.args.Rows = int32(images * rows * columns)
		g.work.launch(k.Launch, kernels.Tiles(images*rows*columns, in[2]))
	}
}

package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// projection is a dense node that a head reads: few outputs, without an activation, each kept as a column of the rows. Its weights
// are transposed: output a reads weight[a*depth : (a+1)*depth]. What is appended to it are more columns.
type projection struct {
	node
	weight, bias param
	depth        int // inputs, in whole sixteens
	dense        int // columns of the dense node
	tail         param
	appended     *layer.Append
}

func newProjection(n node) *projection {
	h := &projection{node: n, depth: pad(n.width), dense: n.out, bias: tensor(n.out)}
	h.weight = param{size: n.out * h.depth, count: n.width * n.out, index: func(i int) int { return i%n.out*h.depth + i/n.out }}
	return h
}

// append adds columns to the projection that is read, or returns nil: it must be the node before, and no other reads it.
func (l *layout) append(n node, of *layer.Append) op {
	h, ok := n.in[0].from.(*projection)
	if !ok || h.appended != nil || h.at != len(l.ops)-1 || l.readers(h.name) != 1 {
		return nil
	}
	h.appended, h.out = of, h.out+of.N
	if !of.Fixed {
		h.tail = tensor(of.N)
	}
	return h
}

func (h *projection) params() []*param {
	if h.tail.count == 0 {
		return []*param{&h.weight, &h.bias}
	}
	return []*param{&h.weight, &h.bias, &h.tail}
}

func (h *projection) forward(p *pass) func(rows int) {
	c := prepare(&p.owner, kernels.HeadsKernel)
	a := c.args
	a.Weight, a.Bias, a.Control = p.param(&h.weight), p.param(&h.bias), p.control
	a.Depth, a.Outputs, a.Tails = int32(h.depth), int32(h.dense), int32(h.out-h.dense)
	if h.appended != nil {
		a.Constant = float32(h.appended.Init)
	}
	if h.tail.count > 0 {
		a.Tail = p.param(&h.tail)
	}
	return func(rows int) {
		x := p.input(&h.in[0])
		a.X, a.Row, a.Out, a.Rows, a.LD = x.Data, x.Row, p.out[h.at], int32(rows), int32(p.ld)
		p.work.launch(c.Launch, driver.Dim{X: kernels.Blocks(rows).X, Y: h.out})
	}
}

// backward reads the gradient of the outputs in place of the outputs.
func (h *projection) backward(g *gradient) func(rows int) {
	weights := outer(g, kernels.Matrix{Data: g.part(&h.weight), Row: int32(h.depth), Column: 1}, h.dense, h.width)
	biases := sums(g, g.part(&h.bias), h.dense)
	tails := func(kernels.Matrix, int) {}
	if h.tail.count > 0 {
		tails = sums(g, g.part(&h.tail), h.tail.count)
	}
	on := g.descend(&h.in[0], kernels.Matrix{Data: g.param(&h.weight), Row: 1, Column: int32(h.depth)}, h.dense)
	own := kernels.Matrix{Data: g.delta[h.at], Row: 1, Column: int32(g.ld)}
	behind := kernels.Matrix{Data: at(own.Data, h.dense*g.ld), Row: 1, Column: own.Column}
	return func(rows int) {
		weights(own, g.input(&h.in[0]), rows)
		biases(own, rows)
		tails(behind, rows)
		on(own, rows)
	}
}

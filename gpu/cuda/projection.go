package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// projection is a dense node that a head reads: few outputs, without an activation, each kept as a column of the rows. Its weights
// are transposed: output a reads weight[a*depth : (a+1)*depth]. Appended parameters are more columns.
type projection struct {
	node
	weight, bias plan.Tensor
	depth        int // inputs, in whole sixteens
	dense        int // columns of the dense node
	tail         plan.Tensor
}

func newProjection(n node) *projection {
	n.row = 0
	dense, depth := layer.Elems(n.Shape), pad(n.Width)
	h := &projection{node: n, depth: depth, dense: dense, bias: plan.Flat(dense)}
	h.weight = plan.Tensor{Size: dense * depth, Count: n.Width * dense, Index: func(i int) int { return i%dense*depth + i/dense }}
	if a := n.Append; a != nil && !a.Fixed {
		h.tail = plan.Flat(a.N)
	}
	return h
}

func (h *projection) params() []*plan.Tensor {
	if h.tail.Count == 0 {
		return []*plan.Tensor{&h.weight, &h.bias}
	}
	return []*plan.Tensor{&h.weight, &h.bias, &h.tail}
}

func (h *projection) forward(p *pass) func(rows int) {
	c := prepare(&p.owner, kernels.HeadsKernel)
	a := c.args
	a.Weight, a.Bias, a.Control = p.param(&h.weight), p.param(&h.bias), p.control
	a.Depth, a.Outputs, a.Tails = int32(h.depth), int32(h.dense), int32(h.Out-h.dense)
	if h.Append != nil {
		a.Constant = float32(h.Append.Init)
	}
	if h.tail.Count > 0 {
		a.Tail = p.param(&h.tail)
	}
	return func(rows int) {
		x := p.input(&h.In[0])
		a.X, a.Row, a.Out, a.Rows, a.LD = x.Data, x.Row, p.out[h.At], int32(rows), int32(p.ld)
		p.work.launch(c.Launch, driver.Dim{X: kernels.Blocks(rows).X, Y: h.Out})
	}
}

// backward reads the gradient of the outputs in place of the outputs.
func (h *projection) backward(g *gradient) func(rows int) {
	weights := outer(g, kernels.Matrix{Data: g.part(&h.weight), Row: int32(h.depth), Column: 1}, h.dense, h.Width)
	biases := sums(g, g.part(&h.bias), h.dense)
	tails := func(kernels.Matrix, int) {}
	if h.tail.Count > 0 {
		tails = sums(g, g.part(&h.tail), h.tail.Count)
	}
	on := g.descend(&h.In[0], kernels.Matrix{Data: g.param(&h.weight), Row: 1, Column: int32(h.depth)}, h.dense)
	own := kernels.Matrix{Data: g.delta[h.At], Row: 1, Column: int32(g.ld)}
	behind := kernels.Matrix{Data: at(own.Data, h.dense*g.ld), Row: 1, Column: own.Column}
	return func(rows int) {
		weights(own, g.input(&h.In[0]), rows)
		biases(own, rows)
		tails(behind, rows)
		on(own, rows)
	}
}

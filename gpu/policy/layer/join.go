package layer

import (
	"fmt"
	"slices"
)

// Add is the sum of inputs of one shape, such as of both ways around a residual block.
type Add struct{}

var _ Op = (*Add)(nil)

// Shape is that of every input.
func (*Add) Shape(in [][]int) ([]int, error) {
	if len(in) < 2 {
		return nil, fmt.Errorf("%d inputs, want two or more", len(in))
	}
	for _, shape := range in[1:] {
		if !slices.Equal(shape, in[0]) {
			return nil, fmt.Errorf("inputs of shapes %v and %v, want one shape", in[0], shape)
		}
	}
	return in[0], nil
}

// Params are none.
func (*Add) Params([][]int) []Tensor { return nil }

// Forward is Op's.
func (*Add) Forward(p *Pass) {
	for _, in := range p.In {
		for i, x := range in {
			p.Out[i] += x
		}
	}
}

// Backward is Op's.
func (*Add) Backward(p *Pass) {
	for _, d := range p.DIn {
		for i, g := range p.DOut {
			d[i] += g
		}
	}
}

// String is "add".
func (*Add) String() string { return "add" }

// Concat is the elements of its inputs side by side, along the last axis: all other axes are the same.
type Concat struct{}

var _ Op = (*Concat)(nil)

// Shape is that of the inputs, with the last axes added up.
func (*Concat) Shape(in [][]int) ([]int, error) {
	if len(in) < 2 {
		return nil, fmt.Errorf("%d inputs, want two or more", len(in))
	}
	out := slices.Clone(in[0])
	last := len(out) - 1
	for _, shape := range in[1:] {
		if len(shape) != len(out) || !slices.Equal(shape[:last], out[:last]) {
			return nil, fmt.Errorf("inputs of shapes %v and %v, want all axes but the last to be the same", in[0], shape)
		}
		out[last] += shape[last]
	}
	if Elems(out) == 0 {
		return nil, fmt.Errorf("an output of shape %v", out)
	}
	return out, nil
}

// Params are none.
func (*Concat) Params([][]int) []Tensor { return nil }

// Forward is Op's.
func (*Concat) Forward(p *Pass) {
	p.parts(func(in, out, n, k int) { copy(p.Out[out:out+n], p.In[k][in:in+n]) })
}

// Backward is Op's.
func (*Concat) Backward(p *Pass) {
	p.parts(func(in, out, n, k int) {
		for i, g := range p.DOut[out : out+n] {
			p.DIn[k][in+i] += g
		}
	})
}

// parts visits every run of n elements that input k and the output have in common.
func (p *Pass) parts(visit func(in, out, n, k int)) {
	out := 0
	n := func(k int) int { return p.Shapes[k][len(p.Shapes[k])-1] }
	for run := range len(p.In[0]) / n(0) {
		for k := range p.In {
			visit(run*n(k), out, n(k), k)
			out += n(k)
		}
	}
}

// String is "concat".
func (*Concat) String() string { return "concat" }

// Flatten is its input as a vector.
type Flatten struct{}

var _ Op = (*Flatten)(nil)

// Shape has one axis.
func (*Flatten) Shape(in [][]int) ([]int, error) {
	n, err := one(in)
	return []int{n}, err
}

// Params are none.
func (*Flatten) Params([][]int) []Tensor { return nil }

// Forward is Op's.
func (*Flatten) Forward(p *Pass) { copy(p.Out, p.In[0]) }

// Backward is Op's.
func (*Flatten) Backward(p *Pass) {
	for i, g := range p.DOut {
		p.DIn[0][i] += g
	}
}

// String is "flatten".
func (*Flatten) String() string { return "flatten" }

package layer

import "fmt"

// Dense is x·weight + bias, with the weight [in][Out] and x taken as one vector.
type Dense struct {
	Out  int     `json:"out" toml:"out" doc:"Width of a dense layer." range:"1 or more"`
	Gain float64 `json:"gain" toml:"gain" doc:"Gain of its orthogonal initialisation."`
}

var _ Op = (*Dense)(nil)

// Shape is [Out].
func (d *Dense) Shape(in [][]int) ([]int, error) {
	if d.Out < 1 || d.Out > MaxElems {
		return nil, fmt.Errorf("%d outputs", d.Out)
	}
	_, err := one(in)
	return []int{d.Out}, err
}

// Params are weight and bias.
func (d *Dense) Params(in [][]int) []Tensor {
	return []Tensor{{Name: "weight", Shape: []int{Elems(in[0]), d.Out}, Gain: d.Gain}, {Name: "bias", Shape: []int{d.Out}}}
}

// Forward is Op's.
func (d *Dense) Forward(p *Pass) {
	width := len(p.In[0]) / p.Rows
	for r := range p.Rows {
		out := p.Out[r*d.Out : (r+1)*d.Out]
		copy(out, p.Params[1])
		for i, x := range p.In[0][r*width : (r+1)*width] {
			for j, w := range p.Params[0][i*d.Out:][:d.Out] {
				out[j] += x * w
			}
		}
	}
}

// Backward is Op's.
func (d *Dense) Backward(p *Pass) {
	width := len(p.In[0]) / p.Rows
	for r := range p.Rows {
		for j, g := range p.DOut[r*d.Out : (r+1)*d.Out] {
			p.Grads[1][j] += g
			for i := range width {
				p.Grads[0][i*d.Out+j] += g * p.In[0][r*width+i]
				p.DIn[0][r*width+i] += g * p.Params[0][i*d.Out+j]
			}
		}
	}
}

// String is such as dense(64).
func (d *Dense) String() string { return fmt.Sprintf("dense(%d)", d.Out) }

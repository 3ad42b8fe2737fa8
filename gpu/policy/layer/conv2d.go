package layer

import "fmt"

// Conv2D is the cross-correlation of an image [height][width][channels] with Out kernels, plus a bias. Outside the image
// are zeros. The weight is [Kernel][Kernel][channels][Out], the result [rows][columns][Out].
type Conv2D struct {
	Window
	Out  int     `json:"out" toml:"out" doc:"Channels of a convolution." range:"1 or more"`
	Gain float64 `json:"gain" toml:"gain" doc:"Gain of its orthogonal initialisation."`
}

var _ Op = (*Conv2D)(nil)

// Shape is [rows][columns][Out].
func (c *Conv2D) Shape(in [][]int) ([]int, error) {
	h, w, _, err := image(in)
	if err != nil {
		return nil, err
	}
	rows, cols, err := c.places(h, w)
	if err != nil {
		return nil, err
	}
	if c.Out < 1 || Elems([]int{rows, cols, c.Out}) == 0 {
		return nil, fmt.Errorf("%d outputs for each of %d×%d windows", c.Out, rows, cols)
	}
	return []int{rows, cols, c.Out}, nil
}

// Params are weight and bias.
func (c *Conv2D) Params(in [][]int) []Tensor {
	return []Tensor{{Name: "weight", Shape: []int{c.Kernel, c.Kernel, in[0][2], c.Out}, Gain: c.Gain}, {Name: "bias", Shape: []int{c.Out}}}
}

// Forward is Op's.
func (c *Conv2D) Forward(p *Pass) {
	for i := range p.Out {
		p.Out[i] = p.Params[1][i%c.Out]
	}
	c.meet(p, func(x, out, weight int) {
		for o := range c.Out {
			p.Out[out+o] += p.In[0][x] * p.Params[0][weight+o]
		}
	})
}

// Backward is Op's.
func (c *Conv2D) Backward(p *Pass) {
	for i, g := range p.DOut {
		p.Grads[1][i%c.Out] += g
	}
	c.meet(p, func(x, out, weight int) {
		for o, g := range p.DOut[out : out+c.Out] {
			p.Grads[0][weight+o] += g * p.In[0][x]
			p.DIn[0][x] += g * p.Params[0][weight+o]
		}
	})
}

// meet visits every element of the input with each pixel of the output that it enters, and the weights in between.
func (c *Conv2D) meet(p *Pass, visit func(x, out, weight int)) {
	h, w, channels := p.Shapes[0][0], p.Shapes[0][1], p.Shapes[0][2]
	from, to := len(p.In[0])/p.Rows, len(p.Out)/p.Rows
	for r := range p.Rows {
		c.each(h, w, func(place, pixel, at int) {
			for k := range channels {
				visit(r*from+pixel*channels+k, r*to+place*c.Out, (at*channels+k)*c.Out)
			}
		})
	}
}

// String is such as conv2d(32, 8×8/4).
func (c *Conv2D) String() string { return fmt.Sprintf("conv2d(%d, %v)", c.Out, &c.Window) }

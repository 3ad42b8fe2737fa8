package layer

import "fmt"

// Append adds N elements after x that are parameters, the same in every row, such as the logarithms of standard
// deviations that do not depend on the state. With Fixed they are the constant Init.
type Append struct {
	N     int     `json:"n" toml:"n" doc:"Parameters appended to the input." range:"1 or more"`
	Init  float64 `json:"init,omitempty" toml:"init" doc:"Their first value."`
	Fixed bool    `json:"fixed,omitempty" toml:"fixed" doc:"They are constants."`
}

var _ Op = (*Append)(nil)

// Shape is [elements of x + N].
func (a *Append) Shape(in [][]int) ([]int, error) {
	if a.N < 1 || a.N > MaxElems/2 {
		return nil, fmt.Errorf("%d more elements", a.N)
	}
	width, err := one(in)
	return []int{width + a.N}, err
}

// Params is the appended vector, unless it is Fixed.
func (a *Append) Params(in [][]int) []Tensor {
	if a.Fixed {
		return nil
	}
	return []Tensor{{Name: "value", Shape: []int{a.N}, Fill: a.Init}}
}

// Forward is Op's.
func (a *Append) Forward(p *Pass) {
	width := len(p.In[0]) / p.Rows
	for r := range p.Rows {
		out := p.Out[r*(width+a.N):]
		copy(out, p.In[0][r*width:(r+1)*width])
		for i := range a.N {
			out[width+i] = a.Init
			if !a.Fixed {
				out[width+i] = p.Params[0][i]
			}
		}
	}
}

// Backward is Op's.
func (a *Append) Backward(p *Pass) {
	width := len(p.In[0]) / p.Rows
	for r := range p.Rows {
		for j, g := range p.DOut[r*(width+a.N) : (r+1)*(width+a.N)] {
			switch {
			case j < width:
				p.DIn[0][r*width+j] += g
			case !a.Fixed:
				p.Grads[0][j-width] += g
			}
		}
	}
}

// String is such as append(2), or append(2, fixed at -1).
func (a *Append) String() string {
	if a.Fixed {
		return fmt.Sprintf("append(%d, fixed at %g)", a.N, a.Init)
	}
	return fmt.Sprintf("append(%d)", a.N)
}

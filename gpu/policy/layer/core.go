package layer

import (
	"fmt"
	"math"
)

// maxCore bounds the size of a core.
const maxCore = 1 << 14

// coreShape is Op.Shape of a core.
func coreShape(in [][]int, size int) ([]int, error) {
	if size < 1 || size > maxCore {
		return nil, fmt.Errorf("a size of %d, want 1 to %d", size, maxCore)
	}
	_, err := one(in)
	return []int{size}, err
}

// coreParams are the weights of the input and of the state, each orthogonal as a whole, and a bias for each.
func coreParams(in [][]int, size, gates int) []Tensor {
	n := gates * size
	return []Tensor{{Name: "weight_ih", Shape: []int{Elems(in[0]), n}, Gain: 1}, {Name: "weight_hh", Shape: []int{size, n}, Gain: 1},
		{Name: "bias_ih", Shape: []int{n}}, {Name: "bias_hh", Shape: []int{n}}}
}

// kept returns the state that a row begins from.
func (p *Pass) kept(row, elems int) []float64 {
	if p.Prev != nil && p.Prev[row] >= 0 {
		return p.StateOut[p.Prev[row]*elems:][:elems]
	}
	return p.State[row*elems:][:elems]
}

// gates returns the sums of the input and of the state h before the functions of the gates: n numbers of each.
func (p *Pass) gates(row, n int, h []float64) (input, state []float64) {
	width := len(p.In[0]) / p.Rows
	return affine(p.In[0][row*width:][:width], p.Params[0], p.Params[2][:n]), affine(h, p.Params[1], p.Params[3][:n])
}

// affine is x·weight + bias.
func affine(x, weight, bias []float64) []float64 {
	out := append([]float64(nil), bias...)
	for i, v := range x {
		for j, w := range weight[i*len(out):][:len(out)] {
			out[j] += v * w
		}
	}
	return out
}

// descend adds the gradient of a row, given that of what gates returns. dh is that of h.
func (p *Pass) descend(row int, dInput, dState, h, dh []float64) {
	width := len(p.In[0]) / p.Rows
	along := func(g, x, dx []float64, weight int) {
		for j, d := range g {
			p.Grads[weight+2][j] += d
			for i := range x {
				p.Grads[weight][i*len(g)+j] += d * x[i]
				dx[i] += d * p.Params[weight][i*len(g)+j]
			}
		}
	}
	along(dInput, p.In[0][row*width:][:width], p.DIn[0][row*width:][:width], 0)
	along(dState, h, dh, 1)
}

// dKept returns where the gradient of the state that a row begins from is added up, in room for all rows: that of a row
// without a predecessor is not needed.
func (p *Pass) dKept(row, elems int, room []float64) []float64 {
	if p.Prev != nil && p.Prev[row] >= 0 {
		return room[p.Prev[row]*elems:][:elems]
	}
	return make([]float64, elems)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

package layer

import "math"

// LayerNorm normalises along the last axis (Ba et al. 2016): (x - mean)/√(variance + LayerNormEps)·weight + bias. Of a
// vector that is all of it, of an image the channels of each pixel.
type LayerNorm struct{}

// LayerNormEps is added to variances.
const LayerNormEps = 1e-5

var _ Op = (*LayerNorm)(nil)

// Shape is that of the input.
func (*LayerNorm) Shape(in [][]int) ([]int, error) {
	if _, err := one(in); err != nil {
		return nil, err
	}
	return in[0], nil
}

// Params are weight and bias, of the length of the last axis.
func (*LayerNorm) Params(in [][]int) []Tensor {
	n := in[0][len(in[0])-1]
	return []Tensor{{Name: "weight", Shape: []int{n}, Fill: 1}, {Name: "bias", Shape: []int{n}}}
}

// Forward is Op's.
func (*LayerNorm) Forward(p *Pass) {
	n := len(p.Params[0])
	for lo := 0; lo < len(p.Out); lo += n {
		x := p.In[0][lo : lo+n]
		mean, inverse := moments(x)
		for i, v := range x {
			p.Out[lo+i] = (v-mean)*inverse*p.Params[0][i] + p.Params[1][i]
		}
	}
}

// Backward is Op's.
func (*LayerNorm) Backward(p *Pass) {
	n := len(p.Params[0])
	for lo := 0; lo < len(p.Out); lo += n {
		x := p.In[0][lo : lo+n]
		mean, inverse := moments(x)
		var sum, along float64 // of the gradient over the normalised x, and of its product with that
		for i, v := range x {
			g, z := p.DOut[lo+i], (v-mean)*inverse
			p.Grads[0][i] += g * z
			p.Grads[1][i] += g
			sum += g * p.Params[0][i]
			along += g * p.Params[0][i] * z
		}
		for i, v := range x {
			z := (v - mean) * inverse
			p.DIn[0][lo+i] += inverse * (p.DOut[lo+i]*p.Params[0][i] - (sum+along*z)/float64(n))
		}
	}
}

// moments returns the mean of x and the inverse of its deviation.
func moments(x []float64) (mean, inverse float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	return mean, 1 / math.Sqrt(variance+LayerNormEps)
}

// String is "layernorm".
func (*LayerNorm) String() string { return "layernorm" }

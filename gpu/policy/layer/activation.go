package layer

import (
	"fmt"
	"math"
)

// Func is a function of single elements.
type Func string

// Functions.
const (
	Tanh Func = "tanh"
	ReLU Func = "relu"
	ELU  Func = "elu"
)

// Activation applies a function to each element.
type Activation struct {
	Func Func `json:"func" toml:"func"`
}

var _ Op = (*Activation)(nil)

// Shape is that of the input.
func (a *Activation) Shape(in [][]int) ([]int, error) {
	if a.Func != Tanh && a.Func != ReLU && a.Func != ELU {
		return nil, fmt.Errorf("activation %q: want tanh, relu or elu", a.Func)
	}
	if _, err := one(in); err != nil {
		return nil, err
	}
	return in[0], nil
}

// Params are none.
func (a *Activation) Params([][]int) []Tensor { return nil }

// Forward is Op's.
func (a *Activation) Forward(p *Pass) {
	for i, x := range p.In[0] {
		p.Out[i] = a.value(x)
	}
}

// Backward is Op's.
func (a *Activation) Backward(p *Pass) {
	for i, g := range p.DOut {
		p.DIn[0][i] += g * a.slope(p.Out[i])
	}
}

func (a *Activation) value(x float64) float64 {
	switch {
	case a.Func == Tanh:
		return math.Tanh(x)
	case x > 0:
		return x
	case a.Func == ELU:
		return math.Expm1(x)
	}
	return 0
}

// slope is the derivative, given the result.
func (a *Activation) slope(h float64) float64 {
	switch {
	case a.Func == Tanh:
		return 1 - h*h
	case h > 0:
		return 1
	case a.Func == ELU:
		return h + 1
	}
	return 0
}

// String is the function's name.
func (a *Activation) String() string { return string(a.Func) }

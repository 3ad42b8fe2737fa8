package layer

import (
	"fmt"
	"math"
	"slices"
)

// Func is a function of single elements.
type Func string

// Functions.
const (
	Tanh Func = "tanh"
	ReLU Func = "relu"
	ELU  Func = "elu"
	GELU Func = "gelu" // x·Φ(x), of the normal distribution (Hendrycks and Gimpel 2016), without an approximation by tanh
	SiLU Func = "silu" // x·σ(x), of the logistic function (Elfwing et al. 2018), also called swish
)

// Funcs lists the functions, in the order in which messages and pages name them.
func Funcs() []Func { return []Func{Tanh, ReLU, ELU, GELU, SiLU} }

// OfResult reports whether the derivative is a function of the result. Backends then compute the function in place. GELU and
// SiLU are not monotonic: one result has two derivatives, so their input must stay for the backward pass.
func (f Func) OfResult() bool { return f != GELU && f != SiLU }

// Activation applies a function to each element.
type Activation struct {
	Func Func `json:"func" toml:"func"`
}

var _ Op = (*Activation)(nil)

// Shape is that of the input.
func (a *Activation) Shape(in [][]int) ([]int, error) {
	if !slices.Contains(Funcs(), a.Func) {
		return nil, fmt.Errorf("activation %q: want one of %v", a.Func, Funcs())
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
		p.Out[i] = a.Func.value(x)
	}
}

// Backward is Op's.
func (a *Activation) Backward(p *Pass) {
	for i, g := range p.DOut {
		p.DIn[0][i] += g * a.Func.slope(p.In[0][i])
	}
}

func (f Func) value(x float64) float64 {
	switch f {
	case Tanh:
		return math.Tanh(x)
	case ELU:
		if x <= 0 {
			return math.Expm1(x)
		}
		return x
	case GELU:
		return x * normal(x)
	case SiLU:
		return x * logistic(x)
	}
	return math.Max(x, 0)
}

// slope is the derivative at x.
func (f Func) slope(x float64) float64 {
	switch {
	case f == Tanh:
		return 1 - math.Tanh(x)*math.Tanh(x)
	case f == GELU:
		return normal(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
	case f == SiLU:
		return logistic(x) * (1 + x*(1-logistic(x)))
	case x > 0:
		return 1
	case f == ELU:
		return math.Exp(x)
	}
	return 0
}

// normal is the standard normal distribution function.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// String is the function's name.
func (a *Activation) String() string { return string(a.Func) }

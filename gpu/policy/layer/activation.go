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

// function is a Func with its derivative, both at x.
type function struct {
	name         Func
	ofResult     bool // the derivative is a function of the result
	value, slope func(x float64) float64
}

// functions are all there are: a row for each, in the order in which messages and pages name them.
var functions = []function{
	{Tanh, true, math.Tanh, func(x float64) float64 { return 1 - math.Tanh(x)*math.Tanh(x) }},
	{ReLU, true, func(x float64) float64 { return max(x, 0) }, step},
	{ELU, true, func(x float64) float64 { return max(x, math.Expm1(min(x, 0))) }, func(x float64) float64 { return math.Exp(min(x, 0)) }},
	{GELU, false, func(x float64) float64 { return x * normal(x) },
		func(x float64) float64 { return normal(x) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi) }},
	{SiLU, false, func(x float64) float64 { return x * logistic(x) }, func(x float64) float64 { return logistic(x) * (1 + x*(1-logistic(x))) }},
}

// step is 1 for positive numbers, else 0.
func step(x float64) float64 {
	if x > 0 {
		return 1
	}
	return 0
}

// normal is the standard normal distribution function.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Funcs lists the functions.
func Funcs() (all []Func) {
	for i := range functions {
		all = append(all, functions[i].name)
	}
	return all
}

// row returns the row of a function that Shape accepts.
func (f Func) row() *function {
	return &functions[slices.IndexFunc(functions, func(of function) bool { return of.name == f })]
}

// OfResult reports whether the derivative is a function of the result. Backends then compute the function in place. GELU and
// SiLU are not monotonic: one result has two derivatives, so their input must stay for the backward pass.
func (f Func) OfResult() bool { return f.row().ofResult }

// Activation applies a function to each element.
type Activation struct {
	Func Func `json:"func" toml:"func" doc:"Activation function." range:"relu, tanh, elu, gelu, silu"`
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
	f := a.Func.row()
	for i, x := range p.In[0] {
		p.Out[i] = f.value(x)
	}
}

// Backward is Op's.
func (a *Activation) Backward(p *Pass) {
	f := a.Func.row()
	for i, g := range p.DOut {
		p.DIn[0][i] += g * f.slope(p.In[0][i])
	}
}

// String is the function's name.
func (a *Activation) String() string { return string(a.Func) }

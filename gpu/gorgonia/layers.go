package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Node is a value of a gorgonia graph.
type Node = gorgonia.Node

// Linear returns x·weight + bias, shape [rows, out], for x [rows, in], weight [in, out] and bias [1, out].
func Linear(x, weight, bias *Node) (*Node, error) {
	var c calc
	y := c.add(c.matMul(x, weight), c.repeat(bias, x.Shape()[0]))
	return y, c.err
}

// Activate applies an activation to each element. The derivative of ReLU at 0 is 0. An activation that it does
// not know is policy.ErrUnsupported.
func Activate(x *Node, a policy.Activation) (*Node, error) {
	var c calc
	var y *Node
	switch a {
	case policy.Tanh:
		y = c.unary(gorgonia.Tanh, x)
	case policy.ReLU:
		y = c.positive(x)
	case policy.ELU:
		// Of the two halves exactly one must have the derivative 1 at 0, where ELU's is 1: min's.
		y = c.add(c.positive(x), c.unary(gorgonia.Expm1, c.min(x, c.fill(x, 0))))
	default:
		return nil, fmt.Errorf("activation %q: %w", a, policy.ErrUnsupported)
	}
	return y, c.err
}

// SumRow returns the sum of each row, shape [rows, 1], for x [rows, n]. The elements are added in their order, so
// that a row's sum does not depend on the other rows, which gorgonia's own Sum does not promise.
func SumRow(x *Node) (*Node, error) {
	var c calc
	y := c.sumRow(x)
	return y, c.err
}

// Spread returns n copies of a column side by side, shape [rows, n], for x [rows, 1].
func Spread(x *Node, n int) (*Node, error) {
	var c calc
	y := c.spread(x, n)
	return y, c.err
}

// Repeat returns a row that many times, one below the other, shape [rows, n], for x [1, n].
func Repeat(x *Node, rows int) (*Node, error) {
	var c calc
	y := c.repeat(x, rows)
	return y, c.err
}

// Constant returns a tensor of x's shape and element type that holds v everywhere.
func Constant(x *Node, v float64) *Node {
	var c calc
	return c.fill(x, v)
}

// SumAll returns the scalar Σ weight⊙x of two columns. With LossInputs.Weight it is the mean over a minibatch.
func SumAll(weight, x *Node) (*Node, error) {
	var c calc
	y := c.sumAll(weight, x)
	return y, c.err
}

package gorgonia

import "gorgonia.org/gorgonia"

// Node is a value of a gorgonia graph.
type Node = gorgonia.Node

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

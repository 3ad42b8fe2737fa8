// Package layer has the operations of a network's nodes: for each the rule of its shape, its parameters with their
// initial values, and a reference in float64, forward and backward, that backends must equal.
//
// An operation is a struct in its own file, whose exported fields are its attributes. It becomes part of networks as
// a field of policy.Node.
package layer

import "fmt"

// Op computes a node from its inputs, row by row; a Core reads the previous row as well.
type Op interface {
	// Shape returns the shape of an output row for the shapes of input rows, or their error.
	Shape(in [][]int) ([]int, error)
	// Params lists the tensors of parameters, for inputs that Shape accepts.
	Params(in [][]int) []Tensor
	// Forward computes p.Out.
	Forward(p *Pass)
	// Backward adds to p.DIn and p.Grads, given p.DOut and what Forward has left.
	Backward(p *Pass)
	// String names the operation with its attributes, except attributes of initial values.
	String() string
}

// Core is an operation that keeps a state of each environment from one row to the next. Its parameters lie and its gates are
// in order as PyTorch's, but for weights, which are [in][out].
type Core interface {
	Op
	// State returns the elements that are kept for each row. An episode begins with zeros.
	State() int
}

// Tensor is one tensor of parameters, row-major.
type Tensor struct {
	Name  string // within the node: weight, bias
	Shape []int
	// Gain of an orthogonal initialisation over the last axis against all others; 0 = all elements begin as Fill.
	Gain, Fill float64
}

// Pass is one node's part in a pass of the reference. Tensors of rows are [Rows][elements].
type Pass struct {
	Rows          int
	Shapes        [][]int     // of a row, by input
	In, DIn       [][]float64 // by input
	Out, DOut     []float64
	Params, Grads [][]float64 // by tensor

	// Of a Core alone. Prev names the row that a row follows, which is an earlier one, or is -1 for a row that begins from its
	// own row of State; nil = all do. States are [Rows][elements]. Backward goes along Prev and ends at State.
	Prev            []int
	State, StateOut []float64
}

// MaxElems bounds the elements of a row.
const MaxElems = 1 << 31

// Elems returns the number of elements of a shape, or 0 if it is no shape or too large.
func Elems(shape []int) int {
	n := 1
	for _, d := range shape {
		if d < 1 || d > MaxElems/n {
			return 0
		}
		n *= d
	}
	return n
}

// one returns the elements of the only input.
func one(in [][]int) (int, error) {
	if len(in) != 1 {
		return 0, fmt.Errorf("%d inputs, want one", len(in))
	}
	return Elems(in[0]), nil
}

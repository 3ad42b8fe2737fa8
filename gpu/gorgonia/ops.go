package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Node is a value of a gorgonia graph.
type Node = gorgonia.Node

// caught returns the results of build, or its panic as an error.
func caught(build func() *Node) (y *Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			y, err = nil, panicError(r)
		}
	}()
	return build(), nil
}

// SumRow returns the sum of each row, shape [rows, 1], for x [rows, n]. The elements are added in their order, so
// that a row's sum does not depend on the other rows, which gorgonia's own Sum does not promise.
func SumRow(x *Node) (*Node, error) { return caught(func() *Node { return sumRow(x) }) }

// Spread returns n copies of a column side by side, shape [rows, n], for x [rows, 1].
func Spread(x *Node, n int) (*Node, error) { return caught(func() *Node { return spread(x, n) }) }

// Repeat returns a row that many times, one below the other, shape [rows, n], for x [1, n].
func Repeat(x *Node, rows int) (*Node, error) { return caught(func() *Node { return repeat(x, rows) }) }

// Constant returns a tensor of x's shape and element type that holds v everywhere.
func Constant(x *Node, v float64) *Node { return fill(x, v) }

// SumAll returns the scalar Σ weight⊙x of two columns. With LossInputs.Weight it is the mean over a minibatch.
func SumAll(weight, x *Node) (*Node, error) { return caught(func() *Node { return sumAll(weight, x) }) }

// The functions below panic if gorgonia refuses an operation. All tensors are matrices, because gorgonia's vectors and scalars
// broadcast in surprising ways.

func add(a, b *Node) *Node    { return gorgonia.Must(gorgonia.Add(a, b)) }
func sub(a, b *Node) *Node    { return gorgonia.Must(gorgonia.Sub(a, b)) }
func mul(a, b *Node) *Node    { return gorgonia.Must(gorgonia.HadamardProd(a, b)) }
func matMul(a, b *Node) *Node { return gorgonia.Must(gorgonia.Mul(a, b)) }
func least(a, b *Node) *Node  { return gorgonia.Must(gorgonia.MinBetween(a, b)) }
func most(a, b *Node) *Node   { return gorgonia.Must(gorgonia.MaxBetween(a, b)) }
func exp(x *Node) *Node       { return gorgonia.Must(gorgonia.Exp(x)) }
func log(x *Node) *Node       { return gorgonia.Must(gorgonia.Log(x)) }
func square(x *Node) *Node    { return mul(x, x) }

// clamp limits x to low..high, both of x's shape. At a bound the derivative is 1.
func clamp(x, low, high *Node) *Node { return least(most(x, low), high) }

// positive is max(x, 0) with the derivative 0 at 0, where gorgonia.Rectify has 1.
func positive(x *Node) *Node { return mul(x, gorgonia.Must(gorgonia.Gt(x, fill(x, 0), true))) }

// larger is the larger of a and b with the derivative of a where they are equal, where gorgonia's is that of both.
func larger(a, b *Node) *Node {
	beyond := gorgonia.Must(gorgonia.Gt(b, a, true))
	return add(mul(a, sub(fill(a, 1), beyond)), mul(b, beyond))
}

// scale multiplies by a constant.
func scale(x *Node, v float64) *Node { return mul(x, fill(x, v)) }

// fill returns a constant of x's shape.
func fill(x *Node, v float64) *Node { return constant(x, x.Shape()[0], x.Shape()[1], v) }

// fillRow returns a constant of x's shape whose rows are all the same.
func fillRow(x *Node, row []float64) *Node {
	rows := x.Shape()[0]
	t := tensor.New(tensor.Of(x.Dtype()), tensor.WithShape(rows, len(row)))
	switch data := t.Data().(type) {
	case []float32:
		for i := range data {
			data[i] = float32(row[i%len(row)])
		}
	case []float64:
		for i := range data {
			data[i] = row[i%len(row)]
		}
	}
	return gorgonia.NewConstant(t, gorgonia.WithName(fmt.Sprintf("%d rows of %v", rows, row)))
}

// constant returns a matrix of like's element type. It names its node after shape and value: gorgonia takes constants of
// one name for the same, and by itself names tensors after an excerpt of their elements.
func constant(like *Node, rows, cols int, v float64) *Node {
	t := tensor.New(tensor.Of(like.Dtype()), tensor.WithShape(rows, cols))
	switch data := t.Data().(type) {
	case []float32:
		for i := range data {
			data[i] = float32(v)
		}
	case []float64:
		for i := range data {
			data[i] = v
		}
	}
	return gorgonia.NewConstant(t, gorgonia.WithName(fmt.Sprintf("%v everywhere, %dx%d", v, rows, cols)))
}

// Sums and copies of rows are products with ones: the matrix product adds in the order of the elements whatever
// the shape and the place in memory, and multiplying by 1 changes no bit.

func sumRow(x *Node) *Node           { return matMul(x, constant(x, x.Shape()[1], 1, 1)) }
func spread(x *Node, n int) *Node    { return matMul(x, constant(x, 1, n, 1)) }
func repeat(x *Node, rows int) *Node { return matMul(constant(x, rows, 1, 1), x) }

func sumAll(weight, x *Node) *Node { return gorgonia.Must(gorgonia.Sum(mul(weight, x))) }

// rowMax returns the largest element of each row as a constant.
func rowMax(x *Node) *Node { return gorgonia.Must(gorgonia.ApplyOp(rowMaxOp{}, x)) }

package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// calc builds expressions and keeps the first error; after one every result is nil. All tensors are matrices,
// because gorgonia's vectors and scalars broadcast in surprising ways.
type calc struct{ err error }

type (
	unary  func(*Node) (*Node, error)
	binary func(a, b *Node) (*Node, error)
)

func (c *calc) unary(f unary, x *Node) *Node {
	if c.err != nil {
		return nil
	}
	var y *Node
	y, c.err = f(x)
	return y
}

func (c *calc) binary(f binary, a, b *Node) *Node {
	if c.err != nil {
		return nil
	}
	var y *Node
	y, c.err = f(a, b)
	return y
}

func (c *calc) add(a, b *Node) *Node    { return c.binary(gorgonia.Add, a, b) }
func (c *calc) sub(a, b *Node) *Node    { return c.binary(gorgonia.Sub, a, b) }
func (c *calc) mul(a, b *Node) *Node    { return c.binary(gorgonia.HadamardProd, a, b) }
func (c *calc) matMul(a, b *Node) *Node { return c.binary(gorgonia.Mul, a, b) }
func (c *calc) min(a, b *Node) *Node    { return c.binary(gorgonia.MinBetween, a, b) }
func (c *calc) max(a, b *Node) *Node    { return c.binary(gorgonia.MaxBetween, a, b) }
func (c *calc) exp(x *Node) *Node       { return c.unary(gorgonia.Exp, x) }
func (c *calc) log(x *Node) *Node       { return c.unary(gorgonia.Log, x) }
func (c *calc) square(x *Node) *Node    { return c.mul(x, x) }

// clamp limits x to low..high, both of x's shape. At a bound the derivative is 1.
func (c *calc) clamp(x, low, high *Node) *Node { return c.min(c.max(x, low), high) }

// positive is max(x, 0) with the derivative 0 at 0, where gorgonia.Rectify has 1.
func (c *calc) positive(x *Node) *Node {
	greater := func(a, b *Node) (*Node, error) { return gorgonia.Gt(a, b, true) }
	return c.mul(x, c.binary(greater, x, c.fill(x, 0)))
}

// scale multiplies by a constant.
func (c *calc) scale(x *Node, v float64) *Node { return c.mul(x, c.fill(x, v)) }

// fill returns a constant of x's shape.
func (c *calc) fill(x *Node, v float64) *Node {
	if c.err != nil {
		return nil
	}
	s := x.Shape()
	return constant(x, s[0], s[1], v)
}

// ones returns a constant of ones, of like's element type.
func (c *calc) ones(like *Node, rows, cols int) *Node {
	if c.err != nil {
		return nil
	}
	return constant(like, rows, cols, 1)
}

// constant names its node after shape and value: gorgonia takes constants of one name for the same, and by itself
// names tensors after an excerpt of their elements.
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

func (c *calc) sumRow(x *Node) *Node {
	if c.err != nil {
		return nil
	}
	return c.matMul(x, c.ones(x, x.Shape()[1], 1))
}

func (c *calc) spread(x *Node, n int) *Node {
	if c.err != nil {
		return nil
	}
	return c.matMul(x, c.ones(x, 1, n))
}

func (c *calc) repeat(x *Node, rows int) *Node {
	if c.err != nil {
		return nil
	}
	return c.matMul(c.ones(x, rows, 1), x)
}

func (c *calc) sumAll(weight, x *Node) *Node {
	sum := func(x *Node) (*Node, error) { return gorgonia.Sum(x) }
	return c.unary(sum, c.mul(weight, x))
}

// rowMax returns the largest element of each row as a constant.
func (c *calc) rowMax(x *Node) *Node {
	return c.unary(func(x *Node) (*Node, error) { return gorgonia.ApplyOp(rowMax{}, x) }, x)
}

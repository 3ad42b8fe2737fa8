package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// appended returns x with more columns, which are parameters or constant.
func (p Params) appended(name string, x *Node, n int, init float64, fixed bool) (*Node, error) {
	tail := (*Node)(nil)
	if !fixed {
		value, err := p.Node(name + ".value")
		if err != nil {
			return nil, err
		}
		tail = value
	}
	return caught(func() *Node {
		rows, width := x.Shape()[0], x.Shape()[1]
		if tail == nil {
			return add(placed(x, 0, width+n), constantBehind(x, rows, width, n, init))
		}
		return add(placed(x, 0, width+n), placed(repeat(tail, rows), width, width+n))
	})
}

// constantBehind is zero in the first columns and v in n others.
func constantBehind(like *Node, rows, zeros, n int, v float64) *Node {
	t := tensor.New(tensor.Of(like.Dtype()), tensor.WithShape(rows, zeros+n))
	for i := range rows * n {
		at := i/n*(zeros+n) + zeros + i%n
		switch data := t.Data().(type) {
		case []float32:
			data[at] = float32(v)
		case []float64:
			data[at] = v
		}
	}
	return gorgonia.NewConstant(t, gorgonia.WithName(fmt.Sprintf("%v after %d, %dx%d", v, zeros, rows, zeros+n)))
}

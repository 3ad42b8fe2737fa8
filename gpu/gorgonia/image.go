package gorgonia

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Images are rows [rows, height·width·channels].

// windows returns the elements of an image under each window, place by place: those of positions of the window from lo
// to hi, with rest for what lies outside.
func windows(x *Node, w *layer.Window, in, out []int, lo, hi int, rest float64) *Node {
	p := pickOp{what: w.String(), from: layer.Elems(in), cols: (hi - lo) * in[2], rest: rest}
	for place := range out[0] * out[1] {
		for at := lo; at < hi; at++ {
			y, z := place/out[1]*w.Stride-w.Pad+at/w.Kernel, place%out[1]*w.Stride-w.Pad+at%w.Kernel
			for c := range in[2] {
				from := -1
				if y >= 0 && y < in[0] && z >= 0 && z < in[1] {
					from = (y*in[1]+z)*in[2] + c
				}
				p.index = append(p.index, from)
			}
		}
	}
	p.what += fmt.Sprint(in, lo, hi)
	return pick(x, p)
}

// convolve is a convolution with the weight [kernel·kernel·channels, Out] and the bias [1, Out].
func convolve(x, weight, bias *Node, c *layer.Conv2D, in []int) (*Node, error) {
	out, err := c.Shape([][]int{in})
	if err != nil {
		return nil, err
	}
	return caught(func() *Node {
		y := matMul(windows(x, &c.Window, in, out, 0, c.Kernel*c.Kernel, 0), weight)
		return shaped(add(y, repeat(bias, y.Shape()[0])), layer.Elems(out))
	})
}

// maxPool is the largest element under each window, the first of equals where it is differentiated.
func maxPool(x *Node, m *layer.MaxPool, in []int) (*Node, error) {
	out, err := m.Shape([][]int{in})
	if err != nil {
		return nil, err
	}
	return caught(func() *Node {
		var most *Node
		for at := range m.Kernel * m.Kernel {
			next := windows(x, &m.Window, in, out, at, at+1, -math.MaxFloat32)
			if most == nil {
				most = next
				continue
			}
			most = larger(most, next)
		}
		return shaped(most, layer.Elems(out))
	})
}

// total is the sum of nodes.
func total(in []*Node) (*Node, error) {
	return caught(func() *Node {
		sum := in[0]
		for _, x := range in[1:] {
			sum = add(sum, x)
		}
		return sum
	})
}

// join puts nodes of those shapes side by side along the last axis.
func join(in []*Node, shapes [][]int) (*Node, error) {
	out, err := (&layer.Concat{}).Shape(shapes)
	if err != nil {
		return nil, err
	}
	last, first := out[len(out)-1], 0
	return caught(func() *Node {
		var sum *Node
		for k, x := range in {
			n := shapes[k][len(shapes[k])-1]
			p := pickOp{what: fmt.Sprint("join", last, first, n), from: n, cols: last, index: make([]int, last)}
			for i := range p.index {
				if p.index[i] = i - first; p.index[i] >= n {
					p.index[i] = -1
				}
			}
			first += n
			if y := pick(x, p); sum == nil {
				sum = y
			} else {
				sum = add(sum, y)
			}
		}
		return shaped(sum, layer.Elems(out))
	})
}

// normalise is a layer norm with the weight and the bias [1, n].
func normalise(x, weight, bias *Node) (*Node, error) {
	return caught(func() *Node {
		elems, n := x.Shape()[1], weight.Shape()[1]
		x := shaped(x, n)
		rows := x.Shape()[0]
		mean := func(x *Node) *Node { return scale(sumRow(x), 1/float64(n)) }
		x = sub(x, spread(mean(x), n))
		variance := mean(square(x))
		inverse := exp(scale(log(add(variance, fill(variance, layer.LayerNormEps))), -0.5))
		return shaped(add(mul(mul(x, spread(inverse, n)), repeat(weight, rows)), repeat(bias, rows)), elems)
	})
}

package gorgonia

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Images are rows [rows, height·width·channels].

// windows returns the elements of an image under each window, place by place: for positions of the window from lo
// to hi, with rest for places outside the image.
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

package gorgonia

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

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

// join puts nodes of the given shapes side by side along the last axis.
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

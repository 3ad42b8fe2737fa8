package gorgonia

import (
	"math"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// maxPool is the largest element under each window, for the gradient the first of equal elements.
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

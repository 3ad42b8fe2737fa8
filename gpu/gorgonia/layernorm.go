package gorgonia

import (
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

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

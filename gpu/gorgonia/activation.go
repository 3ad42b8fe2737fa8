package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Activate applies an activation to each element. The derivative of ReLU at 0 is 0. An activation that it does
// not know is policy.ErrUnsupported.
func Activate(x *Node, f layer.Func) (*Node, error) {
	var c calc
	var y *Node
	switch f {
	case layer.Tanh:
		y = c.unary(gorgonia.Tanh, x)
	case layer.ReLU:
		y = c.positive(x)
	case layer.ELU:
		// Of the two halves exactly one must have the derivative 1 at 0, where ELU's is 1: min's.
		y = c.add(c.positive(x), c.unary(gorgonia.Expm1, c.min(x, c.fill(x, 0))))
	default:
		return nil, fmt.Errorf("activation %q: %w", f, policy.ErrUnsupported)
	}
	return y, c.err
}

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
	switch f {
	case layer.Tanh:
		return gorgonia.Tanh(x)
	case layer.ReLU:
		return caught(func() *Node { return positive(x) })
	case layer.ELU:
		// Of the two halves exactly one must have the derivative 1 at 0, where ELU's is 1: min's.
		return caught(func() *Node { return add(positive(x), gorgonia.Must(gorgonia.Expm1(least(x, fill(x, 0))))) })
	case layer.GELU:
		return caught(func() *Node { return mul(x, normal(x)) })
	case layer.SiLU:
		return caught(func() *Node { return mul(x, gorgonia.Must(gorgonia.Sigmoid(x))) })
	}
	return nil, fmt.Errorf("activation %q: %w", f, policy.ErrUnsupported)
}

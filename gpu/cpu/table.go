package cpu

import (
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// compile returns the operation of a node, or nil where this backend cannot compute it: a row for each layer.
func (l *layout) compile(n node, of layer.Op) op {
	switch of := of.(type) {
	case *layer.Dense:
		return l.dense(n)
	case *layer.Activation:
		return l.activation(n, of)
	case *layer.Conv2D:
		return l.conv2d(n, of)
	case *layer.MaxPool:
		return newMaxPool(n, of)
	case *layer.Add:
		return &added{n}
	case *layer.Concat:
		return &joined{n}
	case *layer.Flatten:
		return &activated{n}
	case *layer.LayerNorm:
		return newNormed(n)
	}
	return nil
}

// distOf returns what makes the distribution of a pass, or nil where this backend cannot compute it: a row for each head.
func distOf(of head.Dist) func(p *pass) dist {
	switch of := of.(type) {
	case *head.Categorical:
		return categoricalOf(of)
	}
	return nil
}

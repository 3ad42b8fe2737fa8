package cpu

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// compile returns the operation of a step, or nil where this backend cannot compute it: a row for each layer.
func (l *layout) compile(n node) op {
	switch of := n.Op.(type) {
	case *layer.Dense:
		return l.dense(n)
	case *layer.Activation:
		return &activated{n}
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
	case *layer.GRU:
		return l.coreOf(n, 3, 1)
	case *layer.LSTM:
		return l.coreOf(n, 4, 2)
	}
	return nil
}

// activations are the functions with their derivatives: a row for each.
var activations = map[layer.Func]activation{
	layer.Tanh: {kern.Tanh, kern.DTanh},
	layer.ReLU: {kern.ReLU, kern.DReLU},
	layer.ELU:  {kern.ELU, kern.DELU},
	layer.GELU: {kern.GELU, kern.DGELU},
	layer.SiLU: {kern.SiLU, kern.DSiLU},
}

// partOf returns the maker of an action's distribution for a pass, or nil where this backend cannot compute it: a row for
// each head.
func partOf(of head.Dist) func(p *pass, action int, firstDraw uint32) part {
	switch of := of.(type) {
	case *head.Categorical:
		return choicesOf([]int{of.N}, false)
	case *head.MultiCategorical:
		return choicesOf(of.Counts, false)
	case *head.Bernoulli:
		return choicesOf(slices.Repeat([]int{2}, of.N), true)
	case *head.Gaussian:
		if of.Squash == head.Free || of.Squash == head.Tanh {
			return gaussianOf(of)
		}
	}
	return nil
}

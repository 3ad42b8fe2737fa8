package cuda

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// compile returns the operation of a step, or nil where this backend cannot compute it: a row for each layer.
func (l *layout) compile(n node) op {
	switch of := n.Op.(type) {
	case *layer.Dense:
		return newDense(n)
	case *layer.Activation:
		return &activated{n}
	case *layer.Conv2D:
		return newConv2D(n, of)
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
	layer.Tanh: {kernels.Tanh, kernels.DTanh},
	layer.ReLU: {kernels.ReLU, kernels.DReLU},
	layer.ELU:  {kernels.ELU, kernels.DELU},
	layer.GELU: {kernels.GELU, kernels.DGELU},
	layer.SiLU: {kernels.SiLU, kernels.DSiLU},
}

// actionOf returns the distribution of an action for kernels; ok is false where this backend cannot compute it: a row for each
// head.
func actionOf(of head.Dist) (a action, ok bool) {
	switch of := of.(type) {
	case *head.Categorical:
		return choices([]int{of.N}, false), true
	case *head.MultiCategorical:
		return choices(of.Counts, false), true
	case *head.Bernoulli:
		return choices(slices.Repeat([]int{2}, of.N), true), true
	case *head.Gaussian:
		if of.Squash == head.Free || of.Squash == head.Tanh {
			return gaussian(of), true
		}
	}
	return action{}, false
}

// maxColumns bounds the parameters of a distribution: each is a row of a kernel's grid.
const maxColumns = 1<<16 - 1

// distribute notes how the distributions of the actions are made.
func (l *layout) distribute() error {
	draw := int32(0)
	for i, d := range l.net.Dists() {
		a, ok := actionOf(d)
		if !ok || d.Elems() > maxColumns {
			return policy.Unsupported("action", l.net.Policy[i].Action, d)
		}
		a.ActionSize, a.first = l.sizes.Actions[i], draw
		draw += a.draws
		l.actions = append(l.actions, a)
	}
	return nil
}

package gorgonia

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// apply returns the output of a node from those that it reads: a row for each layer.
func (p Params) apply(name string, of layer.Op, in []*Node) (*Node, error) {
	switch of := of.(type) {
	case *layer.Dense:
		return p.Linear(name, in[0])
	case *layer.Activation:
		return Activate(in[0], of.Func)
	}
	return nil, policy.Unsupported("node", name, of)
}

// dist returns the log-probabilities [rows, values] of what a distribution is made from [rows, elements] and a mask
// [rows, values]. Those of illegal values are far below all others, and what these are made from has no influence.
type dist func(params, mask *Node) *Node

// distOf returns how a distribution is computed, or nil where this backend cannot: a row for each head.
func distOf(of head.Dist) dist {
	switch of := of.(type) {
	case *head.Categorical:
		return categoricalOf(of)
	}
	return nil
}

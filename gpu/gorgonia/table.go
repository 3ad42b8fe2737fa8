package gorgonia

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// apply returns the output of a node from its input nodes, whose rows have the given shapes: a row for each layer.
func (p Params) apply(name string, of layer.Op, in []*Node, shapes [][]int) (*Node, error) {
	switch of := of.(type) {
	case *layer.Dense:
		return p.Linear(name, in[0])
	case *layer.Activation:
		return Activate(in[0], of.Func)
	case *layer.Conv2D:
		weight, bias, err := p.weightAndBias(name)
		if err != nil {
			return nil, err
		}
		return convolve(in[0], weight, bias, of, shapes[0])
	case *layer.MaxPool:
		return maxPool(in[0], of, shapes[0])
	case *layer.Add:
		return total(in)
	case *layer.Concat:
		return join(in, shapes)
	case *layer.Flatten:
		return in[0], nil
	case *layer.LayerNorm:
		weight, bias, err := p.weightAndBias(name)
		if err != nil {
			return nil, err
		}
		return normalise(in[0], weight, bias)
	case *layer.GRU:
		return p.recur(name, in[0], of.Size, 1, gru(of.Size))
	case *layer.LSTM:
		return p.recur(name, in[0], of.Size, 2, lstm(of.Size))
	case *layer.Append:
		return p.appended(name, in[0], of.N, of.Init, of.Fixed)
	}
	return nil, policy.Unsupported("node", name, of)
}

// rowOf returns the log-probability and the entropy of an action in each row, [rows, 1], or nil where this backend cannot
// compute the distribution: a row for each head. drift is not nil where the action estimates the entropy: it is 0 and has the
// entropy's gradient, which entropy then has not. See joint for the columns of action.
func rowOf(of head.Dist, params, mask, action *Node) (logProb, entropy, drift *Node) {
	switch of := of.(type) {
	case *head.Categorical:
		logProb, entropy = categoricalRow(of.N, params, mask, action)
	case *head.MultiCategorical:
		logProb, entropy = multiCategoricalRow(of.Counts, params, mask, action)
	case *head.Bernoulli:
		logProb, entropy = bernoulliRow(of.N, params, mask, action)
	case *head.Gaussian:
		if of.Squash == head.Free || of.Squash == head.Tanh {
			return gaussianRow(of, params, action)
		}
	}
	return logProb, entropy, nil
}

// dist returns the log-probabilities [rows, values] of a distribution's parameters [rows, elements] and a mask
// [rows, values]. Illegal values are far below all others, and their parameters have no influence.
type dist func(params, mask *Node) *Node

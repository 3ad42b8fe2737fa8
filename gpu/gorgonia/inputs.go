package gorgonia

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Inputs returns the inputs of a network by path: the parts of the observations.
func Inputs(n *policy.Network, obs *Node) (nodes map[string]*Node, err error) {
	nodes = map[string]*Node{}
	if len(n.Inputs) == 1 {
		nodes[n.Inputs[0].Path] = obs
		return nodes, nil
	}
	at := 0
	for i := range n.Inputs {
		in := &n.Inputs[i]
		width := layer.Elems(in.Entered())
		from := at
		if nodes[in.Path], err = caught(func() *Node { return columns(obs, from, width) }); err != nil {
			return nil, err
		}
		at += width
	}
	return nodes, nil
}

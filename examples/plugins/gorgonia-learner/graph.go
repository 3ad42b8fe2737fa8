package main

import (
	G "gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
)

// This file is yours to edit: the network and the loss as gorgonia graphs. Gradients come from gorgonia.

// network computes the heads of policy.Network. Its formula may be any function of the network's parameters; with
// another formula than the [policy] table's own network's, let this plugin act too (see README.md).
type network struct{}

var _ gorgonia.Builder = network{}

// Params names the parameters of the [policy] table's network, which are published and saved.
func (network) Params(n *policy.Network) []policy.Param { return n.Params() }

// Heads returns logits [rows, actions] and value [rows, 1] of obs [rows, obs].
func (network) Heads(n *policy.Network, obs *gorgonia.Node, p gorgonia.Params) (logits, value *gorgonia.Node, err error) {
	nodes := map[string]*gorgonia.Node{n.Inputs[0].Path: obs}
	for i := range n.Nodes {
		node := &n.Nodes[i]
		nodes[node.Name] = G.Must(p.Apply(node, nodes))
	}
	return nodes[n.Policy[0].From], nodes[n.Values[0].From], nil
}

// calm is how much large logits cost.
const calm = 1e-3

// loss is PPO's, plus calm times the mean square of the logits, which keeps the policy from being sure too early. Each
// term is a sum over rows with the weights in.Weight, so that rows that only fill up a batch do not count.
func loss(in *gorgonia.LossInputs) (*gorgonia.Node, error) {
	squares := G.Must(gorgonia.SumRow(G.Must(G.Square(in.Logits))))
	penalty := G.Must(G.HadamardProd(squares, gorgonia.Constant(squares, calm)))
	return G.Add(G.Must(gorgonia.PPOLoss(in)), G.Must(gorgonia.SumAll(in.Weight, penalty)))
}

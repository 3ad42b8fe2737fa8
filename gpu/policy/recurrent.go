package policy

import "github.com/rlhost/rlhost/gpu/policy/layer"

// CoreNode is a node that keeps a state from row to row.
type CoreNode struct {
	layer.Core
	Name string
	At   int // where its state begins in that of a row
}

// Cores returns the nodes with a state, in the order of nodes, which is that of their parts of a row's state.
func (n *Network) Cores() (list []CoreNode) {
	at := 0
	for i := range n.Nodes {
		op, _ := n.Nodes[i].Op()
		if core, ok := op.(layer.Core); ok {
			list = append(list, CoreNode{core, n.Nodes[i].Name, at})
			at += core.State()
		}
	}
	return list
}

// State returns the elements of a row's state, 0 for a network without one.
func (n *Network) State() (elems int) {
	for _, c := range n.Cores() {
		elems += c.State()
	}
	return elems
}

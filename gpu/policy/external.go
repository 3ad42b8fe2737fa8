package policy

import (
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// ExternalName is the name of the node of an external network, before the names of its tensors.
const ExternalName = "policy"

// External is a network that a program computes: it reads all inputs, draws the actions itself, and has parameters of its own shapes.
type External struct {
	Program string
	Inputs  []Input
	Policy  []Dist // of the actions, without the nodes that they read
	Weights []layer.Weight
	State   int // elements that it keeps for each row
	Chunk   int // rows that are learned from together, where it keeps some
}

// Network returns the description. Its one node with parameters is the value. Each action has a node of its own that says how large the action
// is: the program draws, and tells nobody from which numbers.
func (x External) Network() Network {
	n := Network{Format: Format, Inputs: x.Inputs}
	node := Node{Name: ExternalName, External: &layer.External{Program: x.Program, Out: 1, Keeps: x.State, Weights: x.Weights}}
	for i := range x.Inputs {
		node.In = append(node.In, x.Inputs[i].Path)
	}
	n.Nodes = []Node{node}
	for _, d := range x.Policy {
		of, err := d.Of()
		if err != nil {
			continue // Validate says so
		}
		d.From = ExternalName + "." + d.Action
		n.Nodes = append(n.Nodes, Node{Name: d.From, In: []string{ExternalName}, External: &layer.External{Program: x.Program, Out: of.Elems()}})
		n.Policy = append(n.Policy, d)
	}
	n.Values = []ValueHead{{Name: "value", From: ExternalName}}
	if x.State > 0 {
		n.Chunk = x.Chunk
	}
	return n
}

// External returns the node that a program computes, nil in a network that is computed here.
func (n *Network) External() *layer.External {
	for i := range n.Nodes {
		if e := n.Nodes[i].External; e != nil {
			return e
		}
	}
	return nil
}

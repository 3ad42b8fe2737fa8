package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Builder adds layers of your own: it states a network's parameters and how the heads' inputs are computed
// from observations. Its methods may be called concurrently. A panic in them is returned as an error, so
// gorgonia.Must is fine there. A part that it does not know is policy.ErrUnsupported, with the part's name.
type Builder interface {
	// Params returns the layout of the canonical parameter vector: tensors one after the other, without gaps. A
	// layout other than n.Params() is for programs that initialise and publish their own weights: policy.Init and
	// the blocks of policy.WeightsFormat have n.Params(). Names that begin with actor. and critic. say whose a parameter
	// is: where there are no others, the gradients of the two can be clipped apart.
	Params(n *policy.Network) []policy.Param
	// Heads returns the parameters of the actions' distributions, side by side, logits [rows, Actions] of a
	// Discrete action, and value [rows, 1] for obs [rows, elements], which is normalised already.
	// Masks, sampling and the loss are applied to its results. Row r of both must depend on row r of obs
	// alone, bit for bit for any number of rows: matrix products, the functions of this package and
	// gorgonia's elementwise functions keep to that.
	Heads(n *policy.Network, obs *Node, p Params) (logits, value *Node, err error)
}

// Params are the parameters of a network as nodes of one graph.
type Params struct {
	nodes  map[string]*Node
	order  gorgonia.Nodes
	shapes map[string][]int // of rows, by input and node
	memory *memory          // of nodes that keep a state
}

// Node returns the parameter with that name, of shape [Rows, Cols], or an error that names it.
func (p Params) Node(name string) (*Node, error) {
	if n, ok := p.nodes[name]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("network has no parameter %q", name)
}

// Graph builds policy.Network as it is specified there, node by node. It is the default.
type Graph struct{}

var _ Builder = Graph{}

// Params returns n.Params().
func (Graph) Params(n *policy.Network) []policy.Param { return n.Params() }

// Heads returns the outputs of the nodes that the heads read.
func (Graph) Heads(n *policy.Network, obs *Node, p Params) (logits, value *Node, err error) {
	nodes, err := Inputs(n, obs)
	if err != nil {
		return nil, nil, err
	}
	for i := range n.Nodes {
		node := &n.Nodes[i]
		if nodes[node.Name], err = p.Apply(node, nodes); err != nil {
			return nil, nil, err
		}
	}
	value = nodes[n.Values[0].From]
	if logits = nodes[n.Policy[0].From]; len(n.Policy) == 1 {
		return logits, value, nil
	}
	logits, err = caught(func() *Node { return sideBySide(n, nodes) })
	return logits, value, err
}

// sideBySide returns the parameters of several actions' distributions, in the order of the actions.
func sideBySide(n *policy.Network, nodes map[string]*Node) *Node {
	wide, at := 0, 0
	for _, d := range n.Dists() {
		wide += d.Elems()
	}
	var all *Node
	for i, d := range n.Dists() {
		part := placed(nodes[n.Policy[i].From], at, wide)
		if at += d.Elems(); all == nil {
			all = part
		} else {
			all = add(all, part)
		}
	}
	return all
}

// Apply returns the output of a node, given its input nodes by name. A node that this backend cannot compute is
// policy.ErrUnsupported, with the node's name.
func (p Params) Apply(n *policy.Node, nodes map[string]*Node) (*Node, error) {
	op, err := n.Op()
	if err != nil {
		return nil, err
	}
	var in []*Node
	var shapes [][]int
	for _, name := range n.In {
		in, shapes = append(in, nodes[name]), append(shapes, p.shapes[name])
	}
	return p.apply(n.Name, op, in, shapes)
}

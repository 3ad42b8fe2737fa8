package policy

import "github.com/rlhost/rlhost/gpu/policy/layer"

// Size is the size of a network, a product of widths in its graph, computed without making it.
type Size struct {
	Params  int // elements of the canonical vector
	Row     int // elements that the nodes compute of a row
	Largest string
	Most    int // parameters of the largest node
}

// Size returns the size of a valid network.
func (n *Network) Size() Size {
	shapes, err := n.Shapes()
	if err != nil {
		panic(err)
	}
	var s Size
	for i := range n.Nodes {
		node := &n.Nodes[i]
		op, _ := node.Op()
		params := 0
		for _, t := range op.Params(node.inputs(shapes)) {
			params += product(t.Shape)
		}
		s.Params += params
		s.Row += layer.Elems(shapes[node.Name])
		if params > s.Most {
			s.Largest, s.Most = node.Name, params
		}
	}
	return s
}

// product multiplies the axes of a tensor of parameters, up to more than any network may have.
func product(shape []int) int {
	n := 1
	for _, d := range shape {
		if d > maxParams/n {
			return maxParams + 1
		}
		n *= d
	}
	return n
}

// leastRows is how many rows go through a network at a time at least.
const leastRows = 16

// ActingBytes returns the minimum memory that an actor keeps: parameters, their places, and the nodes' results for some rows.
func (d *Definition) ActingBytes() int64 {
	s := d.Network.Size()
	return 4 * (2*int64(s.Params) + leastRows*int64(s.Row))
}

// LearningBytes returns the least memory that a learner keeps: parameters as they are and as they began, where they lie, two moments
// and a gradient of them, and outputs and gradients of some rows.
func (d *Definition) LearningBytes() int64 {
	s := d.Network.Size()
	return 4 * (6*int64(s.Params) + 2*leastRows*int64(s.Row))
}

package plan

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Plan is a network as a list of steps. It is immutable.
type Plan struct {
	Steps    []*Step // in the network's order
	Policy   []*Step // the heads of the actions, in their order
	Value    *Step
	Backward []*Step // in the order of the backward pass: heads, then the others from last to first
}

// Step is a node of a network with the nodes that are fused with it.
type Step struct {
	Name  string
	At    int // its place in Plan.Steps
	Op    layer.Op
	In    []Edge
	Shape []int // of a row of the output
	Width int   // elements of a row of the first input
	Out   int   // elements of a row of the output, with what is appended to a head
	Depth int   // steps on the longest way here from an input

	// Head is whether a head of the network reads the step: a dense without an activation that nothing else reads. Append is the
	// node that is appended to it, or nil.
	Head   bool
	Append *layer.Append

	// Activation is the node of the activation that the output has: one that is fused, or the step itself. nil: none.
	Activation *policy.Node
	// Slope is the step whose output the derivative of Activation is a function of: the step itself or the one that it reads.
	// Readers multiply the step's gradient with that derivative. nil: there is none, or no gradient goes further back.
	Slope *Step

	Acts, Values bool // the actions, the value depend on it
}

// Edge is an input of a step: the output of another or, where From is nil, an input of the network. In the backward pass the
// first of several readers begins the gradient of what they read, and the last one ends it.
type Edge struct {
	From        *Step
	Input       int   // of the network, where From is nil
	Shape       []int // of a row
	First, Last bool
}

// Slope returns the step at whose output the reader takes the derivative that it multiplies with: From.Slope for the last reader, nil
// for others.
func (e *Edge) Slope() *Step {
	if e.From == nil || !e.Last {
		return nil
	}
	return e.From.Slope
}

// compiler makes the plan of a network.
type compiler struct {
	Plan
	net    *policy.Network
	shapes map[string][]int
	steps  map[string]*Step // by node
	inputs map[string]int
}

// New returns the plan of a valid network. A head that reads anything but a dense of its own, or what is appended to one, is
// policy.ErrUnsupported.
func New(n *policy.Network) (*Plan, error) {
	c := &compiler{net: n, steps: map[string]*Step{}, inputs: map[string]int{}}
	c.shapes, _ = n.Shapes()
	for i := range n.Inputs {
		c.inputs[n.Inputs[i].Path] = i
	}
	for i := range n.Nodes {
		if err := c.add(&n.Nodes[i]); err != nil {
			return nil, err
		}
	}
	for _, from := range c.heads() {
		s := c.steps[from]
		if s == nil || !s.Head || slices.Contains(c.Policy, s) {
			return nil, fmt.Errorf("network: a head that reads %s, which is not a dense node of its own: %w", from, policy.ErrUnsupported)
		}
		c.Policy = append(c.Policy, s)
	}
	last := len(c.Policy) - 1
	c.Policy, c.Value = c.Policy[:last:last], c.Policy[last]
	c.link()
	return &c.Plan, nil
}

// heads lists the nodes that heads read: the actions', then the value's.
func (c *compiler) heads() (names []string) {
	for i := range c.net.Policy {
		names = append(names, c.net.Policy[i].From)
	}
	return append(names, c.net.Values[0].From)
}

// add makes a node a step, or a part of the step that it reads.
func (c *compiler) add(n *policy.Node) error {
	op, _ := n.Op()
	in, ok := c.edges(n)
	if !ok {
		return policy.Unsupported("node", n.Name, op)
	}
	below := in[0].From
	switch op := op.(type) {
	case *layer.Append:
		if below == nil || !below.Head || below.Append != nil || below.At != len(c.Steps)-1 || c.readers(below.Name) != 1 {
			return policy.Unsupported("node", n.Name, op)
		}
		below.Append, below.Out = op, below.Out+op.N
		c.steps[n.Name] = below
		return nil
	case *layer.Activation:
		if op.Func.OfResult() && below != nil && below.absorbs() && c.readers(below.Name) == 1 {
			below.Activation, below.Slope = n, below
			c.steps[n.Name] = below
			return nil
		}
	}
	s := &Step{Name: n.Name, At: len(c.Steps), Op: op, In: in, Shape: c.shapes[n.Name],
		Width: layer.Elems(in[0].Shape), Out: layer.Elems(c.shapes[n.Name]), Head: n.Dense != nil && c.isHead(n.Name)}
	for _, e := range in {
		if e.From != nil {
			s.Depth = max(s.Depth, e.From.Depth+1)
		}
	}
	if a := n.Activation; a != nil {
		s.Activation = n
		if s.Slope = below; a.Func.OfResult() {
			s.Slope = s
		}
	}
	c.Steps = append(c.Steps, s)
	c.steps[n.Name] = s
	return nil
}

// absorbs reports whether an activation that follows can be part of the step.
func (s *Step) absorbs() bool {
	switch s.Op.(type) {
	case *layer.Dense, *layer.Conv2D, *layer.LayerNorm:
		return !s.Head && s.Activation == nil
	}
	return false
}

// edges returns what a node reads; ok is false if that is a head and the node is not appended to it.
func (c *compiler) edges(n *policy.Node) (edges []Edge, ok bool) {
	for _, name := range n.In {
		from := c.steps[name]
		if from != nil && from.Head && n.Append == nil {
			return nil, false
		}
		edges = append(edges, Edge{From: from, Input: c.inputs[name], Shape: c.shapes[name]})
	}
	return edges, true
}

// isHead reports whether a head reads a node, or what is appended to it.
func (c *compiler) isHead(name string) bool {
	heads := c.heads()
	return slices.Contains(heads, name) || slices.ContainsFunc(c.net.Nodes, func(n policy.Node) bool {
		return n.Append != nil && n.In[0] == name && slices.Contains(heads, n.Name)
	})
}

// readers returns how many inputs of nodes a node is.
func (c *compiler) readers(name string) int {
	count := 0
	for i := range c.net.Nodes {
		for _, in := range c.net.Nodes[i].In {
			if in == name {
				count++
			}
		}
	}
	return count
}

// link notes what depends on each step, and the order in which gradients go back.
func (c *compiler) link() {
	for _, s := range c.Policy {
		s.Acts = true
	}
	c.Value.Values = true
	c.Backward = append(slices.Clone(c.Policy), c.Value)
	for _, s := range slices.Backward(c.Steps) {
		if !s.Head {
			c.Backward = append(c.Backward, s)
		}
		for _, e := range s.In {
			if e.From != nil {
				e.From.Acts = e.From.Acts || s.Acts
				e.From.Values = e.From.Values || s.Values
			}
		}
	}
	last := map[*Step]*Edge{}
	for _, s := range c.Backward {
		for i := range s.In {
			e := &s.In[i]
			e.First = last[e.From] == nil
			last[e.From] = e
		}
	}
	for _, e := range last {
		e.Last = true
	}
}

// Compile returns the plan of a valid network, and what Make makes of it.
func Compile[Activation, Op any](n *policy.Network, activations map[layer.Func]Activation, make func(s *Step, a Activation) (Op, bool)) (*Plan, []Op, error) {
	p, err := New(n)
	if err != nil {
		return nil, nil, err
	}
	ops, err := Make(p, activations, make)
	return p, ops, err
}

// Make makes a backend's operation of each step, with what the backend has for the step's activation: the zero value for none. A
// step that make refuses, or a function that is not in activations, is policy.ErrUnsupported with the node's name.
func Make[Activation, Op any](p *Plan, activations map[layer.Func]Activation, make func(s *Step, a Activation) (Op, bool)) ([]Op, error) {
	var ops []Op
	for _, s := range p.Steps {
		var of Activation
		if n := s.Activation; n != nil {
			var known bool
			if of, known = activations[n.Activation.Func]; !known {
				return nil, policy.Unsupported("node", n.Name, n.Activation)
			}
		}
		op, ok := make(s, of)
		if !ok {
			return nil, policy.Unsupported("node", s.Name, s.Op)
		}
		ops = append(ops, op)
	}
	return ops, nil
}

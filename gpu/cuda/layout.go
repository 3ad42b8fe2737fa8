package cuda

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// layout is a network as this backend computes it, and where its parameters lie in the backend's own vector. What is padded is
// 0, and a gradient of 0 keeps it there.
type layout struct {
	net       policy.Network
	sizes     policy.Sizes
	ops       []op // in the network's order
	actions   []action
	policy    []op // what the heads read, by action
	value     op
	backward  []op          // heads, then nodes from last to first
	names     map[string]op // by node; nil for the inputs
	inputs    map[string]edge
	elems     int            // of what enters in a row
	starts    []int          // of the inputs in a row
	row       int            // elements of a row of what enters, with zeros behind each input up to whole sixteens
	kept      int            // elements of a row's state
	size      int            // of the vector
	tileElems int            // bounds the products of tiles that a pass computes together, in memory that its convolutions share
	canonical int            // how many canonical parameters
	place     func() []int32 // of every canonical parameter in the vector; found when it is first needed
	apart     bool           // actor and critic share no parameter
	critic    int            // where the critic's begin if so; those before are the actor's
}

// op is an operation with the node or nodes that it computes. It has no state but its place: buffers and calls belong to a pass.
type op interface {
	common() *node
	// params lists the canonical tensors of the node.
	params() []*param
	// forward prepares the operation over a pass and returns what submits it for the first rows of that.
	forward(p *pass) func(rows int)
	// backward does so for the gradient of the parameters and for that of what the operation reads, which it passes on
	// with descend, or with below and passed.
	backward(g *gradient) func(rows int)
}

// param is a tensor of parameters in the vector.
type param struct {
	at, size int
	count    int             // elements of the canonical tensor
	index    func(i int) int // where element i of the canonical tensor lies, from at on
}

// tensor is one that lies in the vector as in the canonical one.
func tensor(n int) param { return param{size: n, count: n, index: func(i int) int { return i }} }

// node is what all operations have.
type node struct {
	name       string
	at         int // among the layout's operations
	in         []edge
	width      int // elements of a row of the first input
	out        int // elements of a row of the output
	row        int // between rows of the output; 0 where the output is kept in columns, for a head
	shape      []int
	absorbs    bool // the activation that follows is part of the operation
	activation activation
	acts       bool // the policy, the value depends on it
	values     bool
}

// edge is an input of an operation: the output of another, or a part of what enters where from is nil. In the backward pass,
// the first of several readers begins the gradient of what they read, and the last one ends it.
type edge struct {
	from        op
	shape       []int // of a row
	at          int   // where an input of the network begins in a row
	first, last bool
}

func (n *node) common() *node { return n }

func (n *node) params() []*param { return nil }

func pad(n int) int { return (n + 15) / 16 * 16 }

// newLayout makes the layout of a valid network, or says which part of it this backend cannot compute.
func newLayout(n policy.Network) (*layout, error) {
	l := &layout{net: n, sizes: n.Sizes(), elems: n.Obs(), kept: n.State(), tileElems: tileElems, names: map[string]op{}}
	l.enter()
	if err := l.distribute(); err != nil {
		return nil, err
	}
	shapes, _ := n.Shapes()
	for i := range n.Nodes {
		of, _ := n.Nodes[i].Op()
		if !l.add(&n.Nodes[i], of, shapes) {
			return nil, policy.Unsupported("node", n.Nodes[i].Name, of)
		}
	}
	var heads []op
	for _, from := range l.headNames() {
		o := l.names[from]
		if o == nil || o.common().row != 0 || slices.Contains(heads, o) {
			return nil, fmt.Errorf("network: a head that reads %s, which is not a dense node of its own: %w", from, policy.ErrUnsupported)
		}
		heads = append(heads, o)
	}
	l.policy, l.value = heads[:len(n.Policy)], heads[len(n.Policy)]
	l.link()
	l.lay()
	return l, nil
}

// headNames lists the nodes that heads read: those of the actions, then the value's.
func (l *layout) headNames() (names []string) {
	for i := range l.net.Policy {
		names = append(names, l.net.Policy[i].From)
	}
	return append(names, l.net.Values[0].From)
}

// enter gives every input its part of a row.
func (l *layout) enter() {
	l.inputs = map[string]edge{}
	for i := range l.net.Inputs {
		in := &l.net.Inputs[i]
		l.inputs[in.Path] = edge{at: l.row}
		l.starts = append(l.starts, l.row)
		l.row += pad(layer.Elems(in.Entered()))
	}
}

// add compiles a node, given the shapes of rows by name. It fails where the node reads one that is kept in columns for a
// head.
func (l *layout) add(p *policy.Node, of layer.Op, shapes map[string][]int) bool {
	n := node{name: p.Name, at: len(l.ops), shape: shapes[p.Name]}
	for _, name := range p.In {
		e := edge{from: l.names[name]}
		if e.from == nil {
			e = l.inputs[name]
		} else if p.Append == nil && e.from.common().row == 0 {
			return false
		}
		e.shape = shapes[name]
		n.in = append(n.in, e)
	}
	n.width, n.out = layer.Elems(n.in[0].shape), layer.Elems(n.shape)
	n.row = pad(n.out)
	o := l.compile(n, of)
	if o == nil {
		return false
	}
	if l.names[p.Name] = o; o.common().at == len(l.ops) {
		l.ops = append(l.ops, o)
	}
	return true
}

// isHead reports whether a head reads a node, or what is appended to it.
func (l *layout) isHead(name string) bool {
	for i := range l.net.Nodes {
		if n := &l.net.Nodes[i]; n.Append != nil && n.In[0] == name && slices.Contains(l.headNames(), n.Name) {
			return true
		}
	}
	return slices.Contains(l.headNames(), name)
}

// readers returns how many nodes read a node.
func (l *layout) readers(name string) int {
	count := 0
	for i := range l.net.Nodes {
		for _, in := range l.net.Nodes[i].In {
			if in == name {
				count++
			}
		}
	}
	return count
}

// link notes who depends on what, and in which order gradients are passed on.
func (l *layout) link() {
	for _, o := range l.policy {
		o.common().acts = true
	}
	l.value.common().values = true
	l.backward = append(slices.Clone(l.policy), l.value)
	for _, o := range slices.Backward(l.ops) {
		if o != l.value && !slices.Contains(l.policy, o) {
			l.backward = append(l.backward, o)
		}
		for _, e := range o.common().in {
			if e.from != nil {
				below := e.from.common()
				below.acts = below.acts || o.common().acts
				below.values = below.values || o.common().values
			}
		}
	}
	last := map[op]*edge{}
	for _, o := range l.backward {
		for i := range o.common().in {
			e := &o.common().in[i]
			e.first = last[e.from] == nil
			last[e.from] = e
		}
	}
	for _, e := range last {
		e.last = true
	}
}

// norms is how many parameters share an element of what norms are added up of: all are of the actor, or all of the critic.
const norms = 256

// lay gives every tensor its place: first those of the actor, then those of the critic alone.
func (l *layout) lay() {
	l.apart = true
	for _, critic := range []bool{false, true} {
		l.critic = l.size
		for _, o := range l.ops {
			n := o.common()
			if len(o.params()) > 0 && n.acts && n.values {
				l.apart = false
			}
			for _, p := range o.params() {
				if n.acts != critic {
					p.at = l.size
					l.size += pad(p.size)
				}
			}
		}
		l.size = (l.size + norms - 1) / norms * norms
	}
	for _, o := range l.ops {
		for _, p := range o.params() {
			l.canonical += p.count
		}
	}
	l.place = sync.OnceValue(l.places)
}

// places finds every canonical parameter in the vector.
func (l *layout) places() []int32 {
	place := make([]int32, 0, l.canonical)
	for _, o := range l.ops {
		for _, p := range o.params() {
			for i := range p.count {
				place = append(place, int32(p.at+p.index(i)))
			}
		}
	}
	return place
}

// pixels returns what a byte that enters is multiplied with.
func (l *layout) pixels() float32 {
	if in := &l.net.Inputs[0]; in.Norm == policy.Scaled {
		return in.Scale
	}
	return 1
}

// at is the address of an element of 4 bytes.
func at(base kernels.Address, elem int) kernels.Address { return base + kernels.Address(4*elem) }

package cuda

import (
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
)

// layout is a network as this backend computes it, and the places of its parameters in the backend's own vector. Padding is
// 0, and a gradient of 0 keeps it there.
type layout struct {
	net       policy.Network
	plan      *plan.Plan
	sizes     policy.Sizes
	ops       []op    // by step of the plan
	nodes     []*node // the operations' own
	actions   []action
	elems     int            // of what enters in a row
	starts    []int          // of the inputs in a row
	row       int            // elements of a row of inputs, with zeros after each input up to whole sixteens
	kept      int            // elements of a row's state
	size      int            // of the vector
	canonical int            // how many canonical parameters
	place     func() []int32 // of every canonical parameter in the vector; see plan.Places
	apart     bool           // actor and critic share no parameter
	critic    int            // where the critic's begin if so; those before are the actor's
}

// op computes a step of the plan. It has no state but its place: buffers and calls belong to a pass.
type op interface {
	common() *node
	// params lists the canonical tensors of the step.
	params() []*plan.Tensor
	// forward prepares the operation over a pass and returns what submits it for the first rows of that.
	forward(p *pass) func(rows int)
	// backward does so for the gradients of the parameters and of the operation's inputs, which it passes on
	// with descend, or with below and passed.
	backward(g *gradient) func(rows int)
}

// node is what all operations have.
type node struct {
	*plan.Step
	row        int // between rows of the output; 0 where the output is kept in columns, for a head
	activation activation
}

func (n *node) common() *node { return n }

func (n *node) params() []*plan.Tensor { return nil }

func pad(n int) int { return (n + 15) / 16 * 16 }

// newLayout makes the layout of a valid network, or says which part of it this backend cannot compute.
func newLayout(n policy.Network) (*layout, error) {
	l := &layout{net: n, sizes: n.Sizes(), elems: n.Obs(), kept: n.State()}
	for i := range n.Inputs {
		l.starts = append(l.starts, l.row)
		l.row += pad(layer.Elems(n.Inputs[i].Entered()))
	}
	if err := l.distribute(); err != nil {
		return nil, err
	}
	var err error
	if l.plan, l.ops, err = plan.Compile(&l.net, activations, l.operation); err != nil {
		return nil, err
	}
	for _, o := range l.ops {
		l.nodes = append(l.nodes, o.common())
	}
	l.lay()
	return l, nil
}

// operation makes the operation of a step.
func (l *layout) operation(s *plan.Step, a activation) (o op, ok bool) {
	o = l.compile(node{Step: s, row: pad(s.Out), activation: a})
	return o, o != nil
}

// norms is how many parameters share an element of what norms are added up of: all are of the actor, or all of the critic.
const norms = 256

// lay gives every tensor its place: first the actor's, then the tensors of the critic alone.
func (l *layout) lay() {
	l.apart = true
	for _, critic := range []bool{false, true} {
		l.critic = l.size
		for _, o := range l.ops {
			n := o.common()
			if len(o.params()) > 0 && n.Acts && n.Values {
				l.apart = false
			}
			for _, p := range o.params() {
				if n.Acts != critic {
					p.At = l.size
					l.size += pad(p.Size)
				}
			}
		}
		l.size = (l.size + norms - 1) / norms * norms
	}
	var tensors []*plan.Tensor
	for _, o := range l.ops {
		tensors = append(tensors, o.params()...)
	}
	l.canonical, l.place = plan.Places(tensors)
}

// at is the address of an element of 4 bytes.
func at(base kernels.Address, elem int) kernels.Address { return base + kernels.Address(4*elem) }

package cpu

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// layout is a network as this backend computes it, and where its parameters lie in the backend's own vector: as the
// kernels read and write them, so that neither a forward pass nor a gradient ever packs anything. What is padded is 0,
// and a gradient of 0 keeps it there.
type layout struct {
	net          policy.Network
	obs, actions int
	ops          []op // in the network's order
	dist         dist // of the action
	policy       op   // what the heads read
	value        op
	backward     []op    // in the order of the backward pass: heads, then nodes from last to first
	staged       bool    // an operation reads whole panels of observations
	size         int     // of the vector, a multiple of kern.Panel
	place        []int32 // of every canonical parameter in the vector
	actor        []span  // of the vector, where actor and critic share nothing; else empty
	critic       []span
	names        map[string]op // by node; nil for the observations
}

// op is an operation with the node or nodes that it computes. It has no state but its place: what it computes with lies
// in a pass or a shard.
type op interface {
	common() *node
	// lay takes room for the weights, layBias then for the biases; it is called in the order of depth.
	lay(take func(n int) int)
	layBias(take func(n int) int)
	// tensors lists where the canonical tensors' elements lie, and spans of the vector that hold them.
	tensors(add func(at int))
	spans() []span
	forward(p *pass, rows int)
	backward(s *shard, rows int)
	// packed is the size of what pack makes of the parameters for the backward pass.
	packed() int
	pack(set kern.Set, params, to []float32)
}

// dist is a distribution of actions. Like an op it has no state but its place.
type dist interface {
	// act fills in actions and log-probabilities of rows lo to hi of a request, whose outputs the pass has just computed. It
	// returns the first row without a legal action, or -1.
	act(a *actor, r *policy.Request, lo, hi int) (illegal int)
	// begin prepares the loss of a minibatch of rows rows; loss runs rows lo to hi of it through the loss, which leaves the
	// gradients of the policy's parameters and of the values in their place.
	begin(s *shard, c *ppo.Config, r ppo.Rates, rows int)
	loss(s *shard, lo, hi int)
}

// node is what all operations have.
type node struct {
	at         int // among the layout's operations
	in         op  // nil reads observations
	width      int // elements of a row that it reads
	out        int // elements of a row of the output
	padded     int // of a row of the output, or of what a head reads
	row        int // between rows of the output; 0 for a head's, which are kept in columns
	depth      int
	readers    int
	activation activation // of the output
	first      bool       // on the way back: this operation is the first, the last of those that read the same to pass a gradient on
	last       bool
	acts       bool // the policy, the value depends on it
	values     bool
}

func (n *node) common() *node { return n }

func pad(n int) int { return (n + kern.Panel - 1) / kern.Panel * kern.Panel }

// apart spreads rows over the sets of the first-level cache: with an odd number of cache lines between them, a
// column of rows does not compete for a few sets.
func apart(n int) int { return pad(n) | kern.Panel }

// maxActions bounds the logits of a block of rows, which are kept together.
const maxActions = 1 << 16

// newLayout makes the layout of a valid network, or says which node this backend cannot compute.
func newLayout(n policy.Network) (*layout, error) {
	l := &layout{net: n, obs: n.Obs(), actions: n.Actions(), names: map[string]op{n.Inputs[0].Path: nil}}
	switch d, _ := n.Policy[0].Of(); d.(type) {
	case *head.Categorical:
		l.dist = categorical{}
	default:
		return nil, unsupported("action", n.Policy[0].Action, d)
	}
	if l.actions > maxActions {
		return nil, fmt.Errorf("network: %d actions: %w", l.actions, policy.ErrUnsupported)
	}
	for i := range n.Nodes {
		node := &n.Nodes[i]
		var ok bool
		o, _ := node.Op()
		switch o := o.(type) {
		case *layer.Dense:
			ok = l.dense(node, o)
		case *layer.Activation:
			ok = l.activation(node, o)
		}
		if !ok {
			return nil, unsupported("node", node.Name, o)
		}
	}
	l.policy, l.value = l.names[n.Policy[0].From], l.names[n.Values[0].From]
	for _, h := range []struct {
		from string
		op   op
	}{{n.Policy[0].From, l.policy}, {n.Values[0].From, l.value}} {
		if _, ok := h.op.(*projection); !ok || l.policy == l.value || h.op.common().readers > 0 {
			return nil, fmt.Errorf("network: a head that reads %s, which is not a dense node of its own: %w", h.from, policy.ErrUnsupported)
		}
	}
	l.link()
	l.lay()
	return l, nil
}

func unsupported(what, name string, o fmt.Stringer) error {
	return fmt.Errorf("network: %s %s, %v here: %w", what, name, o, policy.ErrUnsupported)
}

// add appends an operation for a node.
func (l *layout) add(name string, o op) {
	n := o.common()
	n.at = len(l.ops)
	if n.in != nil {
		n.in.common().readers++
		n.depth = n.in.common().depth + 1
	}
	l.ops = append(l.ops, o)
	l.names[name] = o
}

// isHead reports whether a head reads a node.
func (l *layout) isHead(name string) bool {
	return l.net.Policy[0].From == name || l.net.Values[0].From == name
}

// link notes who depends on what.
func (l *layout) link() {
	for o := l.policy; o != nil; o = o.common().in {
		o.common().acts = true
	}
	for o := l.value; o != nil; o = o.common().in {
		o.common().values = true
	}
	l.backward = []op{l.policy, l.value}
	for i := len(l.ops) - 1; i >= 0; i-- {
		if o := l.ops[i]; o != l.policy && o != l.value {
			l.backward = append(l.backward, o)
		}
	}
	seen := map[op]int{}
	for _, o := range l.backward {
		if n := o.common(); n.in != nil {
			seen[n.in]++
			n.first, n.last = seen[n.in] == 1, seen[n.in] == n.in.common().readers
		}
	}
}

// lay gives every parameter its place: nodes of one depth together, heads behind all others.
func (l *layout) lay() {
	take := func(n int) int {
		at := l.size
		l.size = pad(l.size + n)
		return at
	}
	for depth, left := 0, len(l.ops)-2; left > 0; depth++ {
		var level []op
		for _, o := range l.ops {
			if o != l.policy && o != l.value && o.common().depth == depth {
				level = append(level, o)
			}
		}
		for _, o := range level {
			o.lay(take)
		}
		for _, o := range level {
			o.layBias(take)
		}
		left -= len(level)
	}
	for _, o := range []op{l.policy, l.value} {
		o.lay(take)
		o.layBias(take)
	}
	shared := false
	for _, o := range l.ops {
		o.tensors(func(at int) { l.place = append(l.place, int32(at)) })
		if o.common().acts {
			l.actor = append(l.actor, o.spans()...)
		} else {
			l.critic = append(l.critic, o.spans()...)
		}
		shared = shared || o.common().acts && o.common().values
	}
	if shared {
		l.actor, l.critic = nil, nil
	}
}

// importParams copies a canonical vector to the backend's.
func (l *layout) importParams(own, canonical []float32) {
	clear(own)
	for i, at := range l.place {
		own[at] = canonical[i]
	}
}

// exportParams copies the backend's vector to a canonical one.
func (l *layout) exportParams(canonical, own []float32) {
	for i, at := range l.place {
		canonical[i] = own[at]
	}
}

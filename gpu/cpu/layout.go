package cpu

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// layout is a network as this backend computes it, and where its parameters lie in the backend's own vector: as the
// kernels read and write them, so that neither a forward pass nor a gradient ever packs anything. What is padded is 0,
// and a gradient of 0 keeps it there.
type layout struct {
	net          policy.Network
	obs, actions int
	sizes        policy.Sizes
	ops          []op               // in the network's order
	dist         func(p *pass) dist // of the actions
	single       bool               // one Categorical action, which is in records
	policy       []op               // what the heads read, by action
	value        op
	backward     []op // in the order of the backward pass: heads, then nodes from last to first
	staged       bool // an operation reads whole panels of observations
	size         int  // of the vector, a multiple of kern.Panel
	tiled        []*conv2d
	whole        int            // of the vector with what forward passes read besides, which derive makes of the parameters
	canonical    int            // how many canonical parameters
	place        func() []int32 // of every canonical parameter in the vector; found when it is first needed, not to know whether a network can be computed
	actor        []span         // of the vector, where actor and critic share nothing; else empty
	critic       []span
	names        map[string]op // by node; nil for the inputs
	inputs       map[string]edge
	starts       []int // of the inputs in a row; nil for observations that are read as they lie
	row          int   // elements of a row of what enters
	kept         int   // elements of a row's state
	bytes        bool  // rows are bytes, which convolutions alone read
}

// op is an operation with the node or nodes that it computes. It has no state but its place: buffers belong to a pass or a
// shard. Its methods for parameters have defaults in node.
type op interface {
	common() *node
	// params lists the canonical tensors of the node.
	params() []*param
	// packed is the size of what pack makes of the parameters for the backward pass.
	packed() int
	pack(set kern.Set, params, to []float32)
	forward(p *pass, rows int)
	// room is the memory that the operation needs in each pass.
	room() int
	// backward adds to the gradient of the parameters and passes on the gradient of what the operation reads, with
	// descend, or with below and passed.
	backward(s *shard, rows int)
}

// dist is a distribution of actions over what one pass computes.
type dist interface {
	// act fills in actions and log-probabilities of rows lo to hi of a request, whose outputs the pass has just computed. It
	// returns the first row without a legal action, or -1.
	act(r *policy.Request, lo, hi int) (illegal int)
	// begin prepares the loss of rows rows of a minibatch; learn runs rows lo to hi of it through the loss, which leaves the
	// gradients of the policy's parameters and of the values in their place.
	begin(c *ppo.Config, r ppo.Rates, rows int)
	learn(b *minibatch, lo, hi int)
	// logProbs returns the log-probabilities of the rows of the last call of learn, sums what they all have added up.
	logProbs() []float32
	sums() ppo.LossSums
}

// param is a tensor of parameters in the vector.
type param struct {
	at, size int
	count    int             // elements of the canonical tensor
	index    func(i int) int // where element i of the canonical tensor lies, from at on
}

// node is what all operations have.
type node struct {
	name       string
	at         int // among the layout's operations
	in         []edge
	width      int // elements of a row of the first input
	out        int // elements of a row of the output
	padded     int // elements of a row with padding: of the output, or of the input of a projection
	row        int // between rows of the output; 0 where the output is kept in columns, for a head
	shape      []int
	absorbs    bool // the activation that follows is part of the operation
	depth      int
	activation activation // of the output
	acts       bool       // the policy, the value depends on it
	values     bool
}

// edge is an input of an operation: the output of another, or a part of what enters where from is nil. In the backward pass,
// the first of several readers begins the gradient of what they read, and the last one ends it.
type edge struct {
	from        op
	below       *node // that of from
	shape       []int // of a row
	at, width   int   // elements of a row: where an input of the network begins, and how many there are
	first, last bool
}

func (n *node) common() *node { return n }

func (n *node) params() []*param { return nil }

func (n *node) packed() int { return 0 }

func (n *node) pack(kern.Set, []float32, []float32) {}

func (n *node) room() int { return 0 }

func pad(n int) int { return (n + kern.Panel - 1) / kern.Panel * kern.Panel }

// apart spreads rows over the sets of the first-level cache: with an odd number of cache lines between them, a
// column of rows does not compete for a few sets.
func apart(n int) int { return pad(n) | kern.Panel }

// newLayout makes the layout of a valid network, or says which part of it this backend cannot compute.
func newLayout(n policy.Network) (*layout, error) {
	l := &layout{net: n, obs: n.Obs(), actions: n.Actions(), sizes: n.Sizes(), kept: n.State(), names: map[string]op{}}
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
	l.bytes = n.Pixels() && !slices.ContainsFunc(l.ops, readsNumbers)
	l.link()
	l.lay()
	return l, nil
}

// maxChoices bounds the logits of a block of rows, which are kept together.
const maxChoices = 1 << 16

// distribute notes how the distributions of the actions are made.
func (l *layout) distribute() error {
	var parts []func(p *pass, action int, firstDraw uint32) part
	for i, d := range l.net.Dists() {
		of := partOf(d)
		if of == nil || d.Elems() > maxChoices {
			return policy.Unsupported("action", l.net.Policy[i].Action, d)
		}
		parts = append(parts, of)
	}
	l.dist = func(p *pass) dist { return newJoint(p, parts) }
	if c := l.net.Policy[0].Categorical; c != nil && len(parts) == 1 {
		l.dist, l.single = categoricalOf(c), true
	}
	return nil
}

// headNames lists the nodes that heads read: those of the actions, then the value's.
func (l *layout) headNames() (names []string) {
	for i := range l.net.Policy {
		names = append(names, l.net.Policy[i].From)
	}
	return append(names, l.net.Values[0].From)
}

// enter gives every input its part of a row. With several, or other elements than float32, each part is followed by zeros up
// to whole panels.
func (l *layout) enter() {
	l.inputs, l.row = map[string]edge{}, l.obs
	at := 0
	for i := range l.net.Inputs {
		in := &l.net.Inputs[i]
		width := layer.Elems(in.Entered())
		l.inputs[in.Path] = edge{at: at, width: width}
		if !l.net.Plain() {
			l.starts = append(l.starts, at)
		}
		at += pad(width)
	}
	if !l.net.Plain() {
		l.row = at | kern.Panel
	}
}

// readsNumbers reports whether an operation reads what enters as numbers.
func readsNumbers(o op) bool {
	_, is := o.(*conv2d)
	return !is && slices.ContainsFunc(o.common().in, func(e edge) bool { return e.from == nil })
}

// entered is row i of what enters, in memory of one of the two kinds.
func (l *layout) entered(i int, bytes []byte, numbers []float32) policy.EnteredRow {
	if l.bytes {
		return policy.EnteredRow{Bytes: bytes[i*l.obs : (i+1)*l.obs]}
	}
	return policy.EnteredRow{Numbers: numbers[i*l.row:]}
}

// pixels are rows of bytes that enter.
func (l *layout) pixels(rows []byte) pixels {
	scale := float32(1)
	if in := &l.net.Inputs[0]; in.Norm == policy.Scaled {
		scale = in.Scale
	}
	return pixels{data: rows, row: l.obs, scale: scale}
}

// entry returns what makes rows of what is stored, or nil for observations that are read as they lie.
func (l *layout) entry() *policy.Entry {
	if l.starts == nil {
		return nil
	}
	return policy.NewEntry(&l.net, l.starts)
}

// add compiles a node, given the shapes of rows by name. It fails where the node reads one that is kept in columns for a
// head.
func (l *layout) add(p *policy.Node, of layer.Op, shapes map[string][]int) bool {
	n := node{name: p.Name, at: len(l.ops), shape: shapes[p.Name]}
	for i, name := range p.In {
		from := l.names[name]
		if from == nil {
			e := l.inputs[name]
			e.shape = shapes[name]
			if n.in = append(n.in, e); i == 0 {
				n.width = e.width
			}
			continue
		}
		below := from.common()
		n.in = append(n.in, edge{from: from, below: below, shape: shapes[name], width: below.out})
		if p.Append == nil && below.row == 0 {
			return false
		}
		if n.depth = max(n.depth, below.depth+1); i == 0 {
			n.width = below.out
		}
	}
	n.out = layer.Elems(n.shape)
	n.padded, n.row = pad(n.out), apart(n.out)
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
				e.below.acts = e.below.acts || o.common().acts
				e.below.values = e.below.values || o.common().values
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

// lay gives every parameter its place: nodes of one depth together, heads after all others.
func (l *layout) lay() {
	var levels [][]op
	for _, o := range l.ops {
		if n := o.common(); o != l.value && !slices.Contains(l.policy, o) {
			levels = append(levels, make([][]op, max(0, n.depth+1-len(levels)))...)
			levels[n.depth] = append(levels[n.depth], o)
		}
	}
	for _, o := range l.policy {
		levels = append(levels, []op{o})
	}
	for _, ops := range append(levels, []op{l.value}) {
		l.take(ops)
	}
	l.whole = l.size
	for _, c := range l.tiled {
		c.tiles.filters.at = l.whole
		l.whole += c.tiles.filters.size
	}
	shared := false
	for _, o := range l.ops {
		n := o.common()
		for _, p := range o.params() {
			l.canonical += p.count
			part := span{p.at, pad(p.at + p.size)}
			shared = shared || n.acts && n.values
			if n.acts {
				l.actor = append(l.actor, part)
			} else {
				l.critic = append(l.critic, part)
			}
		}
	}
	if shared {
		l.actor, l.critic = nil, nil
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

// take gives operations the next places: the first tensor of each, then the second of each.
func (l *layout) take(ops []op) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, o := range ops {
			if params := o.params(); i < len(params) {
				params[i].at, more = l.size, true
				l.size = pad(l.size + params[i].size)
			}
		}
	}
}

// importParams copies a canonical vector to the backend's.
func (l *layout) importParams(own, canonical []float32) {
	clear(own)
	for i, at := range l.place() {
		own[at] = canonical[i]
	}
}

// derive makes what forward passes read besides the parameters.
func (l *layout) derive(vector []float32) {
	for _, c := range l.tiled {
		c.derive(vector)
	}
}

// exportParams copies the backend's vector to a canonical one.
func (l *layout) exportParams(canonical, own []float32) {
	for i, at := range l.place() {
		canonical[i] = own[at]
	}
}

// span is lo to hi of the rows of a minibatch or of the elements of a vector.
type span struct{ lo, hi int }

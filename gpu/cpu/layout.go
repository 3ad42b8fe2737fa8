package cpu

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/plan"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// layout is a network as this backend computes it, and the places of its parameters in the backend's own vector, ordered as the
// kernels read and write them, so that neither a forward pass nor a gradient ever packs anything. Padding is 0,
// and a gradient of 0 keeps it there.
type layout struct {
	net          policy.Network
	plan         *plan.Plan
	obs, actions int
	sizes        policy.Sizes
	ops          []op               // by step of the plan
	nodes        []*node            // the operations' own
	dist         func(p *pass) dist // of the actions
	single       bool               // one Categorical action, which is in records
	staged       bool               // an operation reads whole panels of observations
	size         int                // of the vector, a multiple of kern.Panel
	tiled        []*conv2d
	whole        int            // of the vector with what forward passes read besides, which derive makes of the parameters
	canonical    int            // how many canonical parameters
	place        func() []int32 // of every canonical parameter in the vector; see plan.Places
	actor        []span         // of the vector, where actor and critic share nothing; else empty
	critic       []span
	begins       []int // of the inputs in a row
	starts       []int // begins; nil for observations that are read as they lie
	row          int   // elements of a row of what enters
	kept         int   // elements of a row's state
	bytes        bool  // rows are bytes, which convolutions alone read
}

// op computes a step of the plan. It has no state but its place: buffers belong to a pass or a shard. Its methods for parameters
// have defaults in node.
type op interface {
	common() *node
	// params lists the canonical tensors of the step.
	params() []*plan.Tensor
	// packed is the size of pack's output for the backward pass.
	packed() int
	pack(set kern.Set, params, to []float32)
	forward(p *pass, rows int)
	// room is the memory that the operation needs in each pass.
	room() int
	// backward adds to the gradient of the parameters and passes on the gradient of the operation's inputs, with
	// descend, or with below and passed.
	backward(s *shard, rows int)
}

// dist is a distribution of actions computed by one pass.
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

// node has the fields of all operations.
type node struct {
	*plan.Step
	padded     int        // elements of a row with padding: of the output, or of the input of a projection
	row        int        // between rows of the output; 0 where the output is kept in columns, for a head
	activation activation // of the output
}

func (n *node) common() *node { return n }

func (n *node) params() []*plan.Tensor { return nil }

func (n *node) packed() int { return 0 }

func (n *node) pack(kern.Set, []float32, []float32) {}

func (n *node) room() int { return 0 }

func pad(n int) int { return (n + kern.Panel - 1) / kern.Panel * kern.Panel }

// apart spreads rows over the sets of the first-level cache: with an odd number of cache lines between them, a
// column of rows does not compete for a few sets.
func apart(n int) int { return pad(n) | kern.Panel }

// newLayout makes the layout of a valid network, or says which part of it this backend cannot compute.
func newLayout(n policy.Network) (*layout, error) {
	l := &layout{net: n, obs: n.Obs(), actions: n.Actions(), sizes: n.Sizes(), kept: n.State()}
	l.enter()
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
	l.bytes = n.Pixels() && !slices.ContainsFunc(l.ops, readsNumbers)
	l.lay()
	return l, nil
}

// operation makes the operation of a step.
func (l *layout) operation(s *plan.Step, a activation) (o op, ok bool) {
	o = l.compile(node{Step: s, padded: pad(s.Out), row: apart(s.Out), activation: a})
	return o, o != nil
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

// enter gives every input its part of a row. With several, or other elements than float32, each part is followed by zeros up
// to whole panels.
func (l *layout) enter() {
	at := 0
	for i := range l.net.Inputs {
		l.begins = append(l.begins, at)
		at += pad(layer.Elems(l.net.Inputs[i].Entered()))
	}
	if l.row = l.obs; !l.net.Plain() {
		l.starts, l.row = l.begins, at|kern.Panel
	}
}

// readsNumbers reports whether an operation reads inputs as numbers.
func readsNumbers(o op) bool {
	_, is := o.(*conv2d)
	return !is && slices.ContainsFunc(o.common().In, func(e plan.Edge) bool { return e.From == nil })
}

// entered is row i of the inputs, in memory of one of the two kinds.
func (l *layout) entered(i int, bytes []byte, numbers []float32) policy.EnteredRow {
	if l.bytes {
		return policy.EnteredRow{Bytes: bytes[i*l.obs : (i+1)*l.obs]}
	}
	return policy.EnteredRow{Numbers: numbers[i*l.row:]}
}

// pixels are rows of bytes that enter.
func (l *layout) pixels(rows []byte) pixels {
	return pixels{data: rows, row: l.obs, scale: l.net.PixelScale()}
}

// entry returns the maker of rows from stored observations, or nil for observations that are read in place.
func (l *layout) entry() *policy.Entry {
	if l.starts == nil {
		return nil
	}
	return policy.NewEntry(&l.net, l.starts)
}

// lay gives every parameter its place: nodes of one depth together, heads after all others.
func (l *layout) lay() {
	var levels [][]op
	for _, o := range l.ops {
		if n := o.common(); !n.Head {
			levels = append(levels, make([][]op, max(0, n.Depth+1-len(levels)))...)
			levels[n.Depth] = append(levels[n.Depth], o)
		}
	}
	for _, s := range append(slices.Clone(l.plan.Policy), l.plan.Value) {
		levels = append(levels, []op{l.ops[s.At]})
	}
	for _, ops := range levels {
		l.take(ops)
	}
	l.whole = l.size
	for _, c := range l.tiled {
		c.tiles.filters.At = l.whole
		l.whole += c.tiles.filters.Size
	}
	shared := false
	var tensors []*plan.Tensor
	for _, o := range l.ops {
		n := o.common()
		tensors = append(tensors, o.params()...)
		for _, p := range o.params() {
			part := span{p.At, pad(p.At + p.Size)}
			shared = shared || n.Acts && n.Values
			if n.Acts {
				l.actor = append(l.actor, part)
			} else {
				l.critic = append(l.critic, part)
			}
		}
	}
	if shared {
		l.actor, l.critic = nil, nil
	}
	l.canonical, l.place = plan.Places(tensors)
}

// take gives operations the next places: the first tensor of each, then the second of each.
func (l *layout) take(ops []op) {
	for i, more := 0, true; more; i++ {
		more = false
		for _, o := range ops {
			if params := o.params(); i < len(params) {
				params[i].At, more = l.size, true
				l.size = pad(l.size + params[i].Size)
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

// derive computes the values that forward passes read besides the parameters.
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

package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Backend makes actors and learners that compute with one set of kernels. It is immutable.
type Backend struct {
	set     kern.Set
	threads int
}

var _ policy.Backend = (*Backend)(nil)

// New returns the backend with the fastest kernels of this machine.
func New() *Backend { return &Backend{set: kern.Detect(), threads: 1} }

// NewWith returns the backend with the named kernels: avx512, avx2 or generic. It fails where the machine lacks
// the instructions.
func NewWith(kernels string) (*Backend, error) {
	set, err := kern.Parse(kernels)
	if err != nil {
		return nil, err
	}
	return &Backend{set: set, threads: 1}, nil
}

// WithThreads returns a backend whose learners share the rows of large minibatches among n goroutines; n below 1
// counts as 1. Results depend on n, as sums are taken in another order, and repeat in every bit for the same n. Such
// a learner must be closed.
func (b *Backend) WithThreads(n int) *Backend { return &Backend{set: b.set, threads: max(n, 1)} }

// Name returns "cpu".
func (b *Backend) Name() string { return "cpu" }

// Kernels returns avx512, avx2 or generic.
func (b *Backend) Kernels() string { return b.set.String() }

// program is a network with one set of kernels.
type program struct {
	*Backend
	layout *layout
}

var _ ppo.Program = (*program)(nil)

// Compile lays out the network.
func (b *Backend) Compile(n *policy.Network) (policy.Program, error) {
	if err := n.Validate(); err != nil {
		return nil, err
	}
	l, err := newLayout(n.Clone())
	if err != nil {
		return nil, err
	}
	return &program{b, l}, nil
}

// NewActor prepares acting. A call of Act may have any number of rows; maxRows is not needed.
func (p *program) NewActor(maxRows int) (policy.Actor, error) { return newActor(p.set, p.layout), nil }

// NewLearner prepares learning from params.
func (p *program) NewLearner(params []float32, c ppo.Config) (ppo.Learner, error) {
	e, err := newEngine(p.Backend, p.layout, params, c)
	if err != nil {
		return nil, err
	}
	return ppo.Over(e, &p.layout.net, p.layout.net.Params(), c)
}

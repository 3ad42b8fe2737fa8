package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Backend makes actors and learners that compute with one set of kernels. It is immutable.
type Backend struct{ set kern.Set }

var _ policy.Backend = (*Backend)(nil)

// New returns the backend with the fastest kernels of this machine.
func New() *Backend { return &Backend{kern.Detect()} }

// NewWith returns the backend with the named kernels: avx512, avx2 or generic. It fails where the machine lacks
// the instructions.
func NewWith(kernels string) (*Backend, error) {
	set, err := kern.Parse(kernels)
	if err != nil {
		return nil, err
	}
	return &Backend{set}, nil
}

// Name returns "cpu".
func (b *Backend) Name() string { return "cpu" }

// Kernels returns avx512, avx2 or generic.
func (b *Backend) Kernels() string { return b.set.String() }

// program is a network with one set of kernels.
type program struct {
	*Backend
	layout *layout
}

var _ ppo.Dividing = (*program)(nil)

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

// NewSeated prepares learning from params with others.
func (p *program) NewSeated(params []float32, c ppo.Config) (ppo.Seated, error) {
	return newEngine(p.Backend, p.layout, params, c)
}

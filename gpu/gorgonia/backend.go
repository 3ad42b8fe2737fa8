package gorgonia

import (
	"cmp"
	"runtime/debug"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Backend makes actors and learners that compute with gorgonia graphs. The zero value is ready. It must not be
// changed once it is in use.
type Backend struct {
	Builder Builder // of the network; nil means Graph
	Loss    Loss    // nil means PPOLoss
}

var _ policy.Backend = (*Backend)(nil)

// New returns the backend with policy.Network's nodes and PPO's loss.
func New() *Backend { return &Backend{} }

// Name returns "gorgonia".
func (b *Backend) Name() string { return "gorgonia" }

// Kernels names the matrix product and the instruction set that the program was compiled for, such as
// gonum-amd64-v1: the Go compiler may round differently from one to the other.
func (b *Backend) Kernels() string {
	name := "gonum"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return name
	}
	for _, key := range []string{"GOARCH", "GOAMD64", "GOARM64"} {
		for _, s := range info.Settings {
			if s.Key == key {
				name += "-" + s.Value
			}
		}
	}
	return name
}

// Params returns the layout of the canonical vector under the backend's builder, n.Params() for the default one.
func (b *Backend) Params(n policy.Network) []policy.Param { return b.builder().Params(&n) }

// compiled is a network as a backend computes it.
type compiled struct {
	*Backend
	model *model
}

var _ ppo.Program = (*compiled)(nil)

// Compile lays out the network's parameters.
func (b *Backend) Compile(n *policy.Network) (policy.Program, error) {
	m, err := newModel(n, b.builder())
	if err != nil {
		return nil, err
	}
	return &compiled{b, m}, nil
}

// NewActor prepares acting: graphs for up to maxRows rows are compiled as they are first needed. A call of Act
// may have more rows.
func (c *compiled) NewActor(maxRows int) (policy.Actor, error) {
	return newActor(c.model, maxRows)
}

// NewLearner prepares learning from params.
func (c *compiled) NewLearner(params []float32, config ppo.Config) (ppo.Learner, error) {
	loss := c.Loss
	if loss == nil {
		loss = PPOLoss
	}
	e, err := newEngine(c.model, c.model.learning(loss, config), params)
	if err != nil {
		return nil, err
	}
	return ppo.Over(e, &c.model.network, c.model.layout, config)
}

func (b *Backend) builder() Builder { return cmp.Or[Builder](b.Builder, Graph{}) }

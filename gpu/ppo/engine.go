package ppo

import (
	"fmt"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Engine computes updates. Its calls submit work, which is done in their order, and return nothing: whether later steps
// still count (TargetKL, a gradient that is not finite), their rates and their statistics are state of the engine, so
// that a device never waits for the host. Finish waits for the device. An engine belongs to one goroutine.
type Engine interface {
	// Begin starts an update with a round, which stays as it is until Finish.
	Begin(r *Round)
	// Target computes the advantages and returns of the round's rows: by GAE, or by V-trace under the parameters of
	// that point in the order.
	Target()
	// Epoch starts a pass over valid rows of the round in this order. The slice stays as it is until the next Epoch.
	Epoch(rows []uint32)
	// Step makes an optimiser step on the epoch's rows lo to hi.
	Step(lo, hi int)
	// Finish waits until all that was submitted is done or, after an error or an excess of TargetKL, skipped. It returns the
	// statistics of the steps that were made, and the first error.
	Finish() (Stats, error)

	// Params, State, SetState and Close are Learner's.
	Params(dst []float32) error
	State() (State, error)
	SetState(s State) error
	Close() error
}

// Round is what one update learns from, and how.
type Round struct {
	Dataset *policy.Dataset
	Samples Samples
	Rates   Rates
}

// Program is a policy.Program whose parameters can be improved.
type Program interface {
	policy.Program
	// NewLearner prepares learning from params (canonical vector, copied) with fresh optimiser state.
	NewLearner(params []float32, c Config) (Learner, error)
}

// NewLearner compiles a network and prepares learning. A backend that only acts is ErrUnsupported.
func NewLearner(b policy.Backend, n *policy.Network, params []float32, c Config) (Learner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	p, err := b.Compile(n)
	if err != nil {
		return nil, err
	}
	learns, ok := p.(Program)
	if !ok {
		return nil, fmt.Errorf("backend %s: learning: %w", b.Name(), policy.ErrUnsupported)
	}
	return learns.NewLearner(params, c)
}

// learner is the one loop of updates, over any engine.
type learner struct {
	Engine
	network *policy.Network
	config  Config
	round   Round
	order   []uint32
}

// Over returns the learner of a network whose work an engine does. It closes the engine with itself.
func Over(e Engine, n *policy.Network, c Config) Learner {
	return &learner{Engine: e, network: n, config: c}
}

// Update submits the work of one dataset and waits for it.
func (l *learner) Update(d *policy.Dataset, r Rates) (Stats, error) {
	if err := d.Check(l.network); err != nil {
		return Stats{}, err
	}
	l.round.Dataset, l.round.Rates = d, r
	if err := l.round.Samples.Read(d, l.network); err != nil {
		return Stats{}, err
	}
	l.Begin(&l.round)
	for epoch := range l.config.Epochs {
		if epoch == 0 || l.config.VTrace && l.config.Recompute == RecomputeEpoch {
			l.Target()
		}
		l.order = append(l.order[:0], l.round.Samples.Valid...)
		Shuffle(d.Seed, d.Index, uint32(epoch), l.order)
		l.Epoch(l.order)
		for lo := 0; lo < len(l.order); {
			rows, _ := NextMinibatch(l.order[lo:], l.config.Minibatch)
			l.Step(lo, lo+len(rows))
			lo += len(rows)
		}
	}
	return l.Finish()
}

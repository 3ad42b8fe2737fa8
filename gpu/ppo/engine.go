package ppo

import (
	"fmt"
	"slices"
	"sync/atomic"

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
	// Epoch starts a pass over valid rows of the round in this order. Rows of a network that keeps a state come chunk by chunk,
	// in order within a chunk. The slice stays as it is until the next Epoch.
	Epoch(rows []uint32)
	// Step makes an optimiser step on the epoch's rows from lo on, whose parts, of whole chunks and no larger than a minibatch, end at ends.
	// It is that of all these rows at once, but for rounding: of their mean loss, with advantages normalised over all of them.
	Step(lo int, ends []int)
	// Finish waits until all that was submitted is done or, after an error or an excess of TargetKL, skipped. It returns the
	// statistics of the steps that were made, and the first error.
	Finish() (Stats, error)

	// Rescale makes every value x of the head x·scale + shift, between updates. Moments of the optimiser stay as they are.
	Rescale(h Head, scale, shift float64)

	// Params, State, SetState and Close are Learner's, except for the unit of values: here it is the network's unit as it learns.
	Params(dst []float32) error
	State() (State, error)
	SetState(s State) error
	Close() error
}

// Round is the data of one update, and how to learn from it.
type Round struct {
	Dataset *policy.Dataset
	Samples Samples // whose values are in the unit
	Rates   Rates
	Unit    Unit // that returns are learned in
}

// Program is a policy.Program whose parameters can be improved.
type Program interface {
	policy.Program
	// NewLearner prepares learning from params (canonical vector, copied) with fresh optimiser state.
	NewLearner(params []float32, c Config) (Learner, error)
}

// NewLearner compiles a network and prepares learning. A backend that only acts is ErrUnsupported.
func NewLearner(b policy.Backend, n *policy.Network, params []float32, c Config) (Learner, error) {
	return NewLearnerWith(b, n, params, c, Hosts{})
}

// NewLearnerWith is NewLearner with learners on other hosts.
func NewLearnerWith(b policy.Backend, n *policy.Network, params []float32, c Config, hosts Hosts) (Learner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if n.Chunk > c.Minibatch {
		return nil, fmt.Errorf("minibatch = %d rows: want a chunk of the network, %d, or more", c.Minibatch, n.Chunk)
	}
	if c.BurnInRows > 0 && c.BurnInRows >= n.Chunk {
		return nil, fmt.Errorf("burn_in_rows = %d: want less than a chunk of the network, %d", c.BurnInRows, n.Chunk)
	}
	p, err := b.Compile(n)
	if err != nil {
		return nil, err
	}
	learns, ok := p.(Program)
	if !ok {
		return nil, fmt.Errorf("backend %s: learning: %w", b.Name(), policy.ErrUnsupported)
	}
	var l Learner
	if c.Learners > 1 || hosts.Most > 0 {
		l, err = newTeam(b, p, n, params, c, hosts)
	} else {
		l, err = learns.NewLearner(params, c)
	}
	if err != nil || c.BurnInRows == 0 {
		return l, err
	}
	return newWarming(l, p, n, c.BurnInRows), nil
}

// learner is the one loop of updates, over any engine.
type learner struct {
	Engine
	network *policy.Network
	config  Config
	round   Round
	order   epoch
	cut     atomic.Bool
	returns Returns // with NormalizeReturns
	head    Head
}

// Over returns the learner of a network whose work an engine does, with canonical vectors of that layout. It closes the
// engine with itself. Datasets come with the states after the configuration's burn-in; NewLearner's learner computes them.
func Over(e Engine, n *policy.Network, layout []policy.Param, c Config) (Learner, error) {
	l := &learner{Engine: e, network: n, config: c, round: Round{Unit: Raw}}
	if !c.NormalizeReturns {
		return l, nil
	}
	var err error
	l.head, err = HeadOf(n.Values[0].From, layout)
	l.round.Unit = l.returns.Unit()
	return l, err
}

// Update submits the work of one dataset and waits for it.
func (l *learner) Update(d *policy.Dataset, r Rates) (Stats, error) {
	if l.config.BurnInRows == 0 {
		d.BurnInRows, d.Warm = 0, nil // another learner's
	}
	if err := d.Check(l.network); err != nil {
		return Stats{}, err
	}
	if d.BurnInRows != l.config.BurnInRows {
		return Stats{}, fmt.Errorf("%w: it has %d burn-in rows, the learner %d", policy.ErrDataset, d.BurnInRows, l.config.BurnInRows)
	}
	l.round.Dataset, l.round.Rates = d, r
	if err := l.round.Samples.Read(d, l.network); err != nil {
		return Stats{}, l.blamed(err)
	}
	l.round.Samples.normalise(l.round.Unit)
	l.Begin(&l.round)
	for epoch := range l.config.Epochs {
		if l.cut.Load() {
			break
		}
		if epoch == 0 || l.config.VTrace && l.config.VTraceRecompute == RecomputeEpoch {
			l.Target()
		}
		l.order.arrange(&l.round, l.network, &l.config, uint32(epoch))
		l.Epoch(l.order.rows)
		lo, part := 0, 0
		for _, parts := range l.order.steps {
			if l.cut.Load() {
				break
			}
			ends := l.order.ends[part : part+parts]
			l.Step(lo, ends)
			lo, part = ends[parts-1], part+parts
		}
	}
	stats, err := l.Finish()
	stats.Rows = float64(len(l.round.Samples.Rows()))
	switch {
	case err != nil:
		err = l.blamed(err)
	case l.cut.Load():
		err = ErrCut
	}
	if err == nil && l.config.NormalizeReturns {
		l.count(stats.Returns)
	}
	return stats, err
}

// Cut is Learner's.
func (l *learner) Cut() { l.cut.Store(true) }

// count takes in the returns of a dataset. The head keeps the meaning of its outputs under the new statistics, as PopArt's
// does (van Hasselt et al. 2016).
func (l *learner) count(r Returns) {
	was := l.round.Unit
	l.returns.Merge(r)
	l.returns.Fade()
	l.round.Unit = l.returns.Unit()
	scale, shift := was.to(l.round.Unit)
	l.Rescale(l.head, scale, shift)
}

// Params copies the canonical vector, whose values are in the units of rewards.
func (l *learner) Params(dst []float32) error {
	if err := l.Engine.Params(dst); err != nil || !l.config.NormalizeReturns {
		return err
	}
	l.head.Rescale(dst, l.round.Unit.Deviation, l.round.Unit.Mean)
	return nil
}

// State returns the state of the engine and of the statistics of returns.
func (l *learner) State() (State, error) {
	s, err := l.Engine.State()
	s.Returns = l.returns
	return s, err
}

// SetState continues from a state that was learned with statistics of returns or without, whichever it is here.
func (l *learner) SetState(s State) error {
	if err := s.Returns.Validate(); err != nil {
		return err
	}
	switch {
	case !l.config.NormalizeReturns && s.Returns.Count > 0:
		s.Params = slices.Clone(s.Params)
		if err := s.Returns.Unit().Denormalise(l.network, s.Params); err != nil {
			return err
		}
	case l.config.NormalizeReturns && s.Returns.Count == 0 && s.AdamSteps > 0:
		s.Returns = RawReturns()
	}
	if err := l.Engine.SetState(s); err != nil {
		return err
	}
	if l.config.NormalizeReturns {
		l.returns = s.Returns
		l.round.Unit = l.returns.Unit()
	}
	return nil
}

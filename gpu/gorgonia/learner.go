package gorgonia

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/policy"
)

// learner implements policy.Learner. Graphs compute losses and gradients; targets, clip and Adam are the policy
// package's own.
type learner struct {
	*model
	params  []float32        // canonical vector, read in place by every graph
	descent *shapes[float32] // with loss and gradient
	forward *shapes[float32] // without
	state   adam

	targets policy.Targets
	samples policy.Samples
	batch   policy.Minibatch
	order   []uint32
	obs     []float32
	logProb []float32 // per dataset row, under the current policy; only for V-trace
}

var _ policy.Learner = (*learner)(nil)

func newLearner(acting, learning *model, params []float32) (*learner, error) {
	if len(params) != learning.size {
		return nil, fmt.Errorf("parameters: %d, the network has %d", len(params), learning.size)
	}
	l := &learner{model: learning, params: append([]float32(nil), params...)}
	l.descent = newShapes(learning, l.params, learning.config.Minibatch)
	l.forward = newShapes(acting, l.params, maxActorRows)
	l.state.set(policy.State{Params: params, AdamM: make([]float32, len(params)), AdamV: make([]float32, len(params))})
	return l, l.descent.try()
}

// Update learns from one dataset. After an error the optimiser steps made before it stay made; ErrNotFinite leaves
// parameters finite.
func (l *learner) Update(d *policy.Dataset, r policy.Rates) (policy.Stats, error) {
	var stats policy.Stats
	if err := d.Check(&l.network); err != nil {
		return stats, err
	}
	if err := l.samples.Read(d, &l.network); err != nil {
		return stats, err
	}
	for epoch := range l.config.Epochs {
		if err := l.target(d, epoch); err != nil {
			return stats, err
		}
		if epoch == 0 {
			stats.ValidRows = float64(len(l.targets.Valid))
			stats.ExplainedVariance = l.targets.ExplainedVariance(l.samples.Value)
		}
		goOn, err := l.epoch(d, r, epoch, &stats)
		if err != nil {
			return stats, err
		}
		if !goOn {
			break
		}
	}
	stats.Finish()
	return stats, nil
}

// target computes advantages and returns where the epoch needs new ones.
func (l *learner) target(d *policy.Dataset, epoch int) error {
	switch {
	case !l.config.VTrace && epoch == 0:
		return l.targets.GAE(d, &l.config)
	case !l.config.VTrace, epoch > 0 && l.config.Recompute != policy.RecomputeEpoch:
		return nil
	}
	if err := l.logProbs(d); err != nil {
		return err
	}
	return l.targets.VTrace(d, &l.config, l.logProb)
}

// epoch makes one pass over the valid rows; goOn is false once TargetKL was exceeded.
func (l *learner) epoch(d *policy.Dataset, r policy.Rates, epoch int, stats *policy.Stats) (goOn bool, err error) {
	stats.Epochs++
	l.order = append(l.order[:0], l.targets.Valid...)
	policy.Shuffle(d.Seed, d.Index, uint32(epoch), l.order)
	for rows, rest := []uint32(nil), l.order; len(rest) > 0; {
		rows, rest = policy.NextMinibatch(rest, l.config.Minibatch)
		kl, err := l.step(d, r, rows, stats)
		if err != nil {
			return false, err
		}
		if l.config.TargetKL > 0 && kl > l.config.TargetKL {
			return false, nil
		}
	}
	return true, nil
}

// step makes one optimiser step and returns the minibatch's approx_kl.
func (l *learner) step(d *policy.Dataset, r policy.Rates, rows []uint32, stats *policy.Stats) (float64, error) {
	l.batch.Gather(d, &l.network, &l.config, &l.samples, &l.targets, rows)
	p, err := l.descent.fit(len(rows))
	if err != nil {
		return 0, err
	}
	p.load(&l.batch, r)
	if err := p.run(); err != nil {
		return 0, err
	}
	norms := l.state.gradient(&l.config, l.layout, p.grad)
	if math.IsNaN(norms.All) || math.IsInf(norms.All, 0) {
		return 0, fmt.Errorf("gradient of optimiser step %d: %w", l.state.steps+1, policy.ErrNotFinite)
	}
	l.state.step(&l.config, r, l.params)
	sums := p.sums(&l.batch, &l.config, r)
	stats.Add(sums, len(rows), norms)
	return sums.ApproxKL / float64(len(rows)), nil
}

// logProbs computes the log-probability of every row's stored action under the current policy. Rows that are not
// valid get some number.
func (l *learner) logProbs(d *policy.Dataset) error {
	l.logProb = l.logProb[:0]
	for total := d.Rows(); len(l.logProb) < total; {
		first := len(l.logProb)
		p, err := l.forward.fit(total - first)
		if err != nil {
			return err
		}
		if err := l.forwardRows(p, d, first, min(first+p.rows, total)); err != nil {
			return err
		}
	}
	return nil
}

func (l *learner) forwardRows(p *program[float32], d *policy.Dataset, first, end int) error {
	n, actions := l.network.Obs, l.network.Actions
	l.order = l.order[:0]
	for row := first; row < end; row++ {
		l.order = append(l.order, uint32(row))
	}
	l.obs = append(l.obs[:0], make([]float32, len(l.order)*n)...)
	d.GatherObs(&l.network, l.order, l.obs)
	var mask []byte
	if len(l.samples.Mask) > 0 {
		mask = l.samples.Mask[first*actions : end*actions]
	}
	p.loadObs(l.obs, mask)
	if err := p.run(); err != nil {
		return err
	}
	for i := range l.order {
		l.logProb = append(l.logProb, p.logProbs[i*actions+int(l.samples.Action[first+i])])
	}
	return nil
}

// Params copies the canonical vector.
func (l *learner) Params(dst []float32) error {
	if len(dst) != len(l.params) {
		return fmt.Errorf("parameters: room for %d, the network has %d", len(dst), len(l.params))
	}
	copy(dst, l.params)
	return nil
}

// State copies parameters and moments.
func (l *learner) State() (policy.State, error) { return l.state.get(), nil }

// SetState replaces parameters and moments.
func (l *learner) SetState(s policy.State) error {
	n := len(l.params)
	if len(s.Params) != n || len(s.AdamM) != n || len(s.AdamV) != n {
		return fmt.Errorf("state of %d parameters and %d and %d moments, the network has %d",
			len(s.Params), len(s.AdamM), len(s.AdamV), n)
	}
	copy(l.params, s.Params)
	l.state.set(s)
	return nil
}

// Close frees the graphs.
func (l *learner) Close() error {
	err := l.descent.close()
	if other := l.forward.close(); err == nil {
		err = other
	}
	return err
}

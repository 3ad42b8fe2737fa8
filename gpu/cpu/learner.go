package cpu

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
)

// Learner improves one policy by PPO on the processor. It belongs to one goroutine at a time.
type Learner struct {
	*layout
	set    kern.Set
	config policy.Config
	params []float32 // laid out by layout, as all vectors of their length
	m, v   []float32 // Adam's moments
	back   [][]float32
	steps  uint64 // optimiser steps made

	team     team
	adam     kern.Adam
	targets  policy.Targets
	samples  policy.Samples
	source   source
	batch    minibatch
	order    []uint32
	logProb  []float32 // per dataset row, under the current policy; only for V-trace
	gathered uint64
}

var _ policy.Learner = (*Learner)(nil)

func newLearner(b *Backend, n policy.Network, params []float32, c policy.Config) (*Learner, error) {
	l := newLayout(n)
	k := &Learner{layout: l, set: b.set, config: c, params: aligned(l.size), m: aligned(l.size), v: aligned(l.size)}
	for i, y := range l.layers {
		packed := 0
		if i > 0 { // the gradient of observations is not needed
			packed = l.encoders * pad(y.in) * y.real
		}
		k.back = append(k.back, aligned(packed))
	}
	zero := make([]float32, len(params))
	if err := k.SetState(policy.State{Params: params, AdamM: zero, AdamV: zero}); err != nil {
		return nil, err
	}
	k.team.start(b.threads, func() *shard { return newShard(newPass(k.set, l, k.params), k.back, &k.batch) })
	return k, nil
}

// Update learns from one dataset. Its work is that of the policy package's reference functions: targets, then
// shuffled minibatches, each a PPOLoss, a clip of the global norm and a step of Adam.
//
// After an error the optimiser steps made before it stay made; ErrNotFinite leaves parameters finite.
func (k *Learner) Update(d *policy.Dataset, r policy.Rates) (policy.Stats, error) {
	var stats policy.Stats
	if err := d.Check(&k.net); err != nil {
		return stats, err
	}
	if err := k.samples.Read(d, &k.net); err != nil {
		return stats, err
	}
	k.source.open(d, &k.samples)
	defer k.source.close()
	for epoch := range k.config.Epochs {
		if err := k.target(d, epoch); err != nil {
			return stats, err
		}
		if epoch == 0 {
			stats.ValidRows = float64(len(k.targets.Valid))
			stats.ExplainedVariance = k.targets.ExplainedVariance(k.samples.Value)
		}
		goOn, err := k.epoch(d, r, epoch, &stats)
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
func (k *Learner) target(d *policy.Dataset, epoch int) error {
	if !k.config.VTrace {
		if epoch > 0 {
			return nil
		}
		if err := k.targets.GAE(d, &k.config); err != nil {
			return err
		}
		k.source.aim(&k.targets)
		return nil
	}
	if epoch > 0 && k.config.Recompute != policy.RecomputeEpoch {
		return nil
	}
	k.logProbs(d)
	if err := k.targets.VTrace(d, &k.config, k.logProb); err != nil {
		return err
	}
	k.source.aim(&k.targets)
	return nil
}

// logProbs computes the log-probability of every stored action under the current policy, for V-trace's ratios. Rows
// that are not valid get a number without a meaning.
func (k *Learner) logProbs(d *policy.Dataset) {
	rows := d.Rows()
	k.logProb = grown(k.logProb, rows)
	s := k.team.shards[0]
	s.prepare(&k.config, policy.Rates{}, rows)
	for lo := 0; lo < rows; lo += s.block {
		n := min(s.block, rows-lo)
		k.order = k.order[:0]
		for i := range n {
			k.order = append(k.order, uint32(lo+i))
		}
		k.gather(d, k.order)
		s.evaluate(0, n)
		copy(k.logProb[lo:], s.loss.NewLogProb[:n])
	}
}

// epoch makes one pass over the valid rows; goOn is false once TargetKL was exceeded.
func (k *Learner) epoch(d *policy.Dataset, r policy.Rates, epoch int, stats *policy.Stats) (goOn bool, err error) {
	stats.Epochs++
	k.order = append(k.order[:0], k.targets.Valid...)
	policy.Shuffle(d.Seed, d.Index, uint32(epoch), k.order)
	for rows, rest := []uint32(nil), k.order; len(rest) > 0; {
		rows, rest = policy.NextMinibatch(rest, k.config.Minibatch)
		kl, err := k.step(d, r, rows, stats)
		if err != nil {
			return false, err
		}
		if k.config.TargetKL > 0 && kl > k.config.TargetKL {
			return false, nil
		}
	}
	return true, nil
}

// step makes one optimiser step and returns the minibatch's approx_kl.
func (k *Learner) step(d *policy.Dataset, r policy.Rates, rows []uint32, stats *policy.Stats) (float64, error) {
	k.gather(d, rows)
	if k.config.NormalizeAdvantage {
		policy.NormalizeAdvantage(k.batch.advantage[:len(rows)])
	}
	grad, sums := k.team.gradient(&k.config, r, len(rows))
	norms := k.norms(grad)
	if math.IsNaN(norms.All) || math.IsInf(norms.All, 0) {
		return 0, fmt.Errorf("gradient of optimiser step %d: %w", k.steps+1, policy.ErrNotFinite)
	}
	k.improve(r, grad, norms)
	stats.Add(sums, len(rows), norms)
	return sums.ApproxKL / float64(len(rows)), nil
}

// norms measures a gradient.
func (k *Learner) norms(grad []float32) policy.GradNorms {
	all := math.Sqrt(k.set.SumSquares(grad))
	n := policy.GradNorms{All: all, Actor: all, Critic: all}
	if len(k.actor) > 0 {
		n.Actor, n.Critic = k.norm(grad, k.actor), k.norm(grad, k.critic)
	}
	return n
}

func (k *Learner) norm(grad []float32, spans []span) float64 {
	squares := 0.0
	for _, s := range spans {
		squares += k.set.SumSquares(grad[s.lo:s.hi])
	}
	return math.Sqrt(squares)
}

// improve applies Adam to the gradient, clipped to its norm or to those of its parts.
func (k *Learner) improve(r policy.Rates, grad []float32, norms policy.GradNorms) {
	k.steps++
	actor, critic := norms.Scales(&k.config)
	if actor == critic {
		k.descend(r, grad, span{0, k.size}, actor)
	} else {
		for _, s := range k.actor {
			k.descend(r, grad, s, actor)
		}
		for _, s := range k.critic {
			k.descend(r, grad, s, critic)
		}
	}
	k.packBack()
}

// descend makes a step of Adam with a part of the gradient times scale.
func (k *Learner) descend(r policy.Rates, grad []float32, s span, scale float64) {
	c, t := &k.config, float64(k.steps)
	k.adam = kern.Adam{Params: k.params[s.lo:s.hi], M: k.m[s.lo:s.hi], V: k.v[s.lo:s.hi], Grad: grad[s.lo:s.hi],
		Rate:  float32(float64(r.LearningRate) / (1 - math.Pow(c.AdamBeta1, t))),
		Beta1: float32(c.AdamBeta1), Keep1: float32(1 - c.AdamBeta1),
		Beta2: float32(c.AdamBeta2), Keep2: float32(1 - c.AdamBeta2),
		Eps: float32(c.AdamEps), Correct2: float32(1 / math.Sqrt(1-math.Pow(c.AdamBeta2, t))),
		Scale: float32(scale)}
	k.set.Adam(&k.adam)
}

// packBack transposes the weights for the backward pass.
func (k *Learner) packBack() {
	for i, y := range k.layers[min(1, len(k.layers)):] {
		size := pad(y.in) * y.real
		for e := range k.encoders {
			t := kern.Transpose{In: y.in, Out: y.real, From: k.params[y.weight+e*y.in*y.out:], To: k.back[i+1][e*size:]}
			k.set.Transpose(&t)
		}
	}
}

// GatheredBytes counts the bytes of observations that were copied into minibatches.
func (k *Learner) GatheredBytes() uint64 { return k.gathered }

// Params copies the canonical vector.
func (k *Learner) Params(dst []float32) error {
	if len(dst) != len(k.place) {
		return fmt.Errorf("parameters: room for %d, the network has %d", len(dst), len(k.place))
	}
	k.exportParams(dst, k.params)
	return nil
}

// State copies parameters and moments.
func (k *Learner) State() (policy.State, error) {
	s := policy.State{AdamSteps: k.steps}
	for _, v := range []struct {
		to   *[]float32
		from []float32
	}{{&s.Params, k.params}, {&s.AdamM, k.m}, {&s.AdamV, k.v}} {
		*v.to = make([]float32, len(k.place))
		k.exportParams(*v.to, v.from)
	}
	return s, nil
}

// SetState replaces parameters and moments.
func (k *Learner) SetState(s policy.State) error {
	n := len(k.place)
	if len(s.Params) != n || len(s.AdamM) != n || len(s.AdamV) != n {
		return fmt.Errorf("state of %d parameters and %d and %d moments, the network has %d",
			len(s.Params), len(s.AdamM), len(s.AdamV), n)
	}
	k.importParams(k.params, s.Params)
	k.importParams(k.m, s.AdamM)
	k.importParams(k.v, s.AdamV)
	k.steps = s.AdamSteps
	k.packBack()
	return nil
}

// Close ends the goroutines of a learner with several threads; with one it does nothing.
func (k *Learner) Close() error {
	k.team.stop()
	return nil
}

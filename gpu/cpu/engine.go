package cpu

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// engine is ppo.Engine on the processor. A step is done when it is submitted.
type engine struct {
	ppo.Host
	*layout
	set    kern.Set
	params []float32 // laid out by layout, with values derived from them
	m, v   []float32 // Adam's moments, laid out so
	back   [][]float32
	steps  uint64 // optimiser steps made

	shard   *shard
	adam    kern.Adam
	source  source
	enters  *policy.Entry // nil for observations that are read as they lie
	batch   minibatch
	chunkAt []int     // where the chunks of its rows begin
	logProb []float32 // per dataset row, under the current policy; only for V-trace
}

var _ ppo.Seated = (*engine)(nil)

func newEngine(b *Backend, l *layout, params []float32, c ppo.Config) (*engine, error) {
	k := &engine{Host: ppo.Host{Config: c}, layout: l, set: b.set, enters: l.entry(), params: aligned(l.whole), m: aligned(l.size), v: aligned(l.size)}
	for _, o := range l.ops {
		k.back = append(k.back, aligned(o.packed()))
	}
	zero := make([]float32, len(params))
	if err := k.SetState(ppo.State{Params: params, AdamM: zero, AdamV: zero}); err != nil {
		return nil, err
	}
	k.shard = newShard(newPass(k.set, l, k.params), k.back, &k.batch)
	return k, nil
}

// Begin opens the round's dataset.
func (k *engine) Begin(r *ppo.Round) {
	k.Host.Begin(r)
	k.source.open(r.Dataset, &r.Samples, k.single)
	if k.enters != nil {
		k.source.rows.Open(&k.net, k.enters, r.Dataset)
	}
}

// Finish returns the statistics and forgets the dataset.
func (k *engine) Finish() (ppo.Stats, error) {
	k.source.close()
	return k.Host.Finish()
}

// Target computes advantages and returns.
func (k *engine) Target() {
	if k.Over() {
		return
	}
	var logProb []float32
	if k.Config.VTrace {
		k.logProbs()
		logProb, _ = k.Sum(k.logProb, ppo.LossSums{}) // each row is in one learner's share, and 0 in the others'
		if k.Over() || k.Missed() {
			return
		}
	}
	k.Aim(logProb)
	if !k.Over() {
		k.source.aim(&k.Targets)
	}
}

// logProbs computes the log-probability of every stored action under the current policy, for V-trace's ratios: 0 for rows that are not valid or
// are in the share of another learner.
func (k *engine) logProbs() {
	k.logProb = grown(k.logProb, k.Dataset.Rows())
	clear(k.logProb)
	rows, size := k.Share(&k.net, k.Samples.Rows()), k.shard.block
	k.shard.prepare(&k.Config, ppo.Rates{}, len(rows))
	if k.kept == 0 {
		for ; len(rows) > 0; rows = rows[min(size, len(rows)):] {
			k.logProbsOf(rows[:min(size, len(rows))])
		}
		return
	}
	chunks := k.layout.block() / k.net.Chunk
	k.chunkAt = k.Dataset.ChunkStarts(&k.net, rows, k.chunkAt[:0])
	for first, last := 0, len(k.chunkAt)-1; first < last; first += chunks {
		k.logProbsOf(k.arrange(rows[k.chunkAt[first]:k.chunkAt[min(first+chunks, last)]]))
	}
}

// logProbsOf is logProbs of a block of rows.
func (k *engine) logProbsOf(rows []uint32) {
	k.gather(rows)
	k.shard.evaluate(0, len(rows))
	for i, row := range rows {
		k.logProb[row] = k.shard.dist.logProbs()[i]
	}
}

// Step makes one optimiser step.
func (k *engine) Step(lo int, ends []int) {
	if k.Over() {
		return
	}
	all := k.Rows[lo:ends[len(ends)-1]]
	if len(ends) == 1 && k.Seat == nil {
		all = k.arrange(all)
	}
	n, moments := len(all), k.MomentsOf(all)
	k.shard.prepare(&k.Config, k.Rates, n)
	for _, hi := range ends {
		rows := k.arrange(k.Share(&k.net, k.Rows[lo:hi]))
		k.gather(rows)
		moments.Normalize(k.batch.advantage[:len(rows)])
		k.shard.rows(len(rows))
		lo = hi
	}
	grad, sums := k.Sum(k.shard.grad, k.shard.dist.sums())
	if k.Over() || k.Missed() {
		return
	}
	norms := k.norms(grad)
	if k.Finite(norms, k.steps+1) {
		k.improve(k.NextRates(sums, n), grad, norms)
		k.Stepped(sums, n, norms)
	}
}

// norms measures a gradient.
func (k *engine) norms(grad []float32) ppo.GradNorms {
	all := math.Sqrt(k.set.SumSquares(grad))
	n := ppo.GradNorms{All: all, Actor: all, Critic: all}
	if len(k.actor) > 0 {
		n.Actor, n.Critic = k.norm(grad, k.actor), k.norm(grad, k.critic)
	}
	return n
}

func (k *engine) norm(grad []float32, spans []span) float64 {
	squares := 0.0
	for _, s := range spans {
		squares += k.set.SumSquares(grad[s.lo:s.hi])
	}
	return math.Sqrt(squares)
}

// improve applies Adam to the gradient, clipped to its norm or each part to its own.
func (k *engine) improve(r ppo.Rates, grad []float32, norms ppo.GradNorms) {
	k.steps++
	actor, critic := norms.Scales(&k.Config)
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
	k.pack()
}

// descend makes a step of Adam with a part of the gradient times scale.
func (k *engine) descend(r ppo.Rates, grad []float32, s span, scale float64) {
	c, t := &k.Config, float64(k.steps)
	k.adam = kern.Adam{Params: k.params[s.lo:s.hi], M: k.m[s.lo:s.hi], V: k.v[s.lo:s.hi], Grad: grad[s.lo:s.hi],
		Rate:  float32(float64(r.LearningRate) / (1 - math.Pow(c.AdamBeta1, t))),
		Beta1: float32(c.AdamBeta1), Keep1: float32(1 - c.AdamBeta1),
		Beta2: float32(c.AdamBeta2), Keep2: float32(1 - c.AdamBeta2),
		Eps: float32(c.AdamEps), Correct2: float32(1 / math.Sqrt(1-math.Pow(c.AdamBeta2, t))),
		Scale: float32(scale)}
	k.set.Adam(&k.adam)
}

// pack lays the parameters out for the forward and the backward pass.
func (k *engine) pack() {
	k.derive(k.params)
	for i, o := range k.ops {
		o.pack(k.set, k.params, k.back[i])
	}
}

// Rescale changes the head of the value.
func (k *engine) Rescale(h ppo.Head, scale, shift float64) {
	place := k.place()
	for i := range h.Weight.Rows {
		w := &k.params[place[h.Weight.Offset+i]]
		*w = float32(float64(*w) * scale)
	}
	b := &k.params[place[h.Bias.Offset]]
	*b = float32(float64(*b)*scale + shift)
	k.pack()
}

// Params copies the canonical vector.
func (k *engine) Params(dst []float32) error {
	if len(dst) != k.canonical {
		return fmt.Errorf("parameters: room for %d, the network has %d", len(dst), k.canonical)
	}
	k.exportParams(dst, k.params)
	return nil
}

// State copies parameters and moments.
func (k *engine) State() (ppo.State, error) {
	canonical := func(own []float32) []float32 {
		v := make([]float32, k.canonical)
		k.exportParams(v, own)
		return v
	}
	return ppo.State{Params: canonical(k.params), AdamM: canonical(k.m), AdamV: canonical(k.v), AdamSteps: k.steps,
		LearningRate: k.LearningRate()}, nil
}

// SetState replaces parameters and moments.
func (k *engine) SetState(s ppo.State) error {
	n := k.canonical
	if len(s.Params) != n || len(s.AdamM) != n || len(s.AdamV) != n {
		return fmt.Errorf("state of %d parameters and %d and %d moments, the network has %d",
			len(s.Params), len(s.AdamM), len(s.AdamV), n)
	}
	k.importParams(k.params, s.Params)
	k.importParams(k.m, s.AdamM)
	k.importParams(k.v, s.AdamV)
	k.steps = s.AdamSteps
	k.SetLearningRate(s.LearningRate)
	k.pack()
	return nil
}

// Close does nothing: all of an engine is memory of Go's.
func (k *engine) Close() error { return nil }

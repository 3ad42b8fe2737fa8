package cpu

import (
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// joint is the distribution of all actions of a network: log-probabilities and entropies are the sums of its parts'.
type joint struct {
	*pass
	parts            []part
	entropies, slope []float32 // [block]
	scratch          []float32 // [block] log-probabilities while acting
	loss             kern.Loss
	bounds           float32 // twice the coefficient of the bounds' loss over the rows of a minibatch
}

// part is the distribution of one action computed by one pass.
type part interface {
	// draw writes the action of rows lo to hi of a request, whose outputs the pass has just computed. It returns the first
	// row without a legal choice, or -1. weigh follows with the same rows, b nil.
	draw(r *policy.Request, lo, hi int) (illegal int)
	// weigh adds the log-probabilities and entropies of the rows that were drawn, or of rows lo to hi of a minibatch.
	weigh(b *ppo.Actions, ld, lo, rows int, logProb, entropy []float32)
	// descend replaces the parameters by their gradient; coef is the coefficient of the entropy over the rows, bounds twice the coefficient
	// of the bounds' loss, ratio the weight of an entropy that actions estimate.
	descend(slope, ratio []float32, coef, bounds float32, rows int)
	// draws is how many numbers of the random stream an action takes.
	draws() uint32
}

// newJoint makes the parts of a network's actions.
func newJoint(p *pass, of []func(p *pass, action int, firstDraw uint32) part) *joint {
	j := &joint{pass: p, entropies: aligned(p.block), slope: aligned(p.block), scratch: aligned(p.block)}
	j.loss.NewLogProb = aligned(p.block)
	first := uint32(0)
	for i, make := range of {
		j.parts = append(j.parts, make(p, i, first))
		first += j.parts[i].draws()
	}
	return j
}

func (j *joint) act(r *policy.Request, lo, hi int) (illegal int) {
	for _, p := range j.parts {
		if row := p.draw(r, lo, hi); row >= 0 {
			return row
		}
	}
	clear(j.scratch[:hi-lo])
	for _, p := range j.parts {
		p.weigh(nil, 0, 0, hi-lo, j.scratch, j.entropies)
	}
	copy(r.LogProb[lo:hi], j.scratch)
	return -1
}

func (j *joint) begin(config *ppo.Config, r ppo.Rates, rows int) {
	logProb := j.loss.NewLogProb
	j.loss, j.bounds = lossOf(config, r, rows), float32(2*config.BoundsLossCoef/float64(rows))
	j.loss.NewLogProb, j.loss.Entropies, j.loss.Slope = logProb, j.entropies, j.slope
}

func (j *joint) learn(b *minibatch, lo, hi int) {
	l, rows := &j.loss, hi-lo
	clear(l.NewLogProb)
	clear(l.Entropies)
	for i, p := range j.parts {
		p.weigh(&b.actions[i], b.ld, lo, rows, l.NewLogProb, l.Entropies)
	}
	l.Rows, l.Value = rows, j.columns(j.plan.Value)
	l.OldLogProb, l.OldValue = b.logProb[lo:], b.value[lo:]
	l.Advantage, l.Return = b.advantage[lo:], b.ret[lo:]
	l.Surrogate(j.set)
	for _, p := range j.parts {
		p.descend(l.Slope, l.Entropies, l.Entropy, j.bounds, rows)
	}
}

func (j *joint) logProbs() []float32 { return j.loss.NewLogProb }

func (j *joint) sums() ppo.LossSums { return sumsOf(&j.loss.Sums) }

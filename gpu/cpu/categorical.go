package cpu

import (
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// categorical is head.Categorical as the only action: one kernel does all of its loss.
type categorical struct {
	*pass
	logits  []float32 // of the pass, [actions][block]
	sample  kern.Sample
	loss    kern.Loss
	scratch []float32 // [actions][kern.Lanes]
	start   int32
}

// categoricalOf returns the maker of a categorical distribution.
func categoricalOf(d *head.Categorical) func(p *pass) dist {
	return func(p *pass) dist {
		return &categorical{pass: p, logits: p.columns(p.plan.Policy[0]), start: p.net.Policy[0].Start, scratch: aligned(d.N * kern.Lanes),
			loss: kern.Loss{NewLogProb: aligned(p.block)}}
	}
}

func (c *categorical) act(r *policy.Request, lo, hi int) (illegal int) {
	mask, action := r.ActionMask(0), r.Action[0].Int32()
	if row := c.forbid(&mask, lo, hi); row >= 0 {
		return row
	}
	env, places := r.Keys(lo, hi)
	c.sample = kern.Sample{Rows: hi - lo, Actions: c.actions, Logits: c.logits, LD: c.block, Seed: r.Seed, Step: r.Step,
		Env: env, Places: places, Greedy: r.Greedy, Action: action[lo:hi], LogProb: r.LogProb[lo:hi], Scratch: c.scratch}
	c.set.Sample(&c.sample)
	c.correct(&mask, action, lo, hi)
	if c.start != 0 {
		for row := lo; row < hi; row++ {
			action[row] += c.start
		}
	}
	return -1
}

// forbid makes the logits of masked actions impossible. It returns the first row without a legal action, or -1.
func (c *categorical) forbid(mask *trajectory.Matrix, lo, hi int) int {
	if mask.Rows == 0 {
		return -1
	}
	for row := lo; row < hi; row++ {
		legal := false
		for j := range c.actions {
			if mask.Data[row*mask.StrideRow+j*mask.StrideElem] != 0 {
				legal = true
				continue
			}
			c.logits[j*c.block+row-lo] = kern.Illegal
		}
		if !legal {
			return row
		}
	}
	return -1
}

// correct replaces illegal actions, which only logits that are not numbers can bring about. The mask is the
// guest's, and may have changed: its legal actions are looked at again, but nothing depends on there being one.
func (c *categorical) correct(m *trajectory.Matrix, action []int32, lo, hi int) {
	if m.Rows == 0 {
		return
	}
	for row := lo; row < hi; row++ {
		mask := m.Data[row*m.StrideRow:]
		if mask[int(action[row])*m.StrideElem] != 0 {
			continue
		}
		for j := range c.actions {
			if mask[j*m.StrideElem] != 0 {
				action[row] = int32(j)
				break
			}
		}
	}
}

func (c *categorical) begin(config *ppo.Config, r ppo.Rates, rows int) {
	logProb := c.loss.NewLogProb
	c.loss = lossOf(config, r, rows)
	c.loss.Actions, c.loss.LD, c.loss.NewLogProb, c.loss.Scratch = c.actions, c.block, logProb, c.scratch
}

// lossOf returns the numbers of a loss over the rows of a minibatch.
func lossOf(config *ppo.Config, r ppo.Rates, rows int) kern.Loss {
	mean := 1 / float64(rows)
	bound := float32(math.Inf(1))
	if config.ValueClip > 0 {
		bound = float32(config.ValueClip)
	}
	return kern.Loss{Low: 1 - r.Clip, High: 1 + r.Clip, Clip: r.Clip, Mean: float32(mean),
		Entropy: float32(float64(r.Entropy) * mean), ValueCoef: float32(config.ValueCoef * mean), ValueClip: bound,
		Penalty: float32(config.KLCoef * mean)}
}

func (c *categorical) learn(b *minibatch, lo, hi int) {
	l := &c.loss
	if len(b.mask) > 0 {
		for row := lo; row < hi; row++ {
			for a, legal := range b.mask[row*c.actions : (row+1)*c.actions] {
				if legal == 0 {
					c.logits[a*c.block+row-lo] = kern.Illegal
				}
			}
		}
	}
	l.Rows, l.Logits, l.Value = hi-lo, c.logits, c.columns(c.plan.Value)
	l.Action, l.OldLogProb, l.OldValue = b.action[lo:], b.logProb[lo:], b.value[lo:]
	l.Advantage, l.Return = b.advantage[lo:], b.ret[lo:]
	c.set.Loss(l)
}

func (c *categorical) logProbs() []float32 { return c.loss.NewLogProb }

func (c *categorical) sums() ppo.LossSums { return sumsOf(&c.loss.Sums) }

func sumsOf(s *kern.LossSums) ppo.LossSums {
	total := func(lanes *[kern.Lanes]float32) (sum float64) {
		for _, x := range lanes {
			sum += float64(x)
		}
		return sum
	}
	largest := 0.0
	for _, x := range s.Ratio {
		largest = max(largest, float64(x))
	}
	return ppo.LossSums{PolicyLoss: -total(&s.Surrogate), ValueLoss: total(&s.Value) / 2,
		Entropy: total(&s.Entropy), ApproxKL: total(&s.KL), OldApproxKL: -total(&s.LogRatio),
		Clipped: total(&s.Clipped), RatioError: largest}
}

package cpu

import (
	"math"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// categorical is head.Categorical.
type categorical struct{}

// act draws from the logits.
func (categorical) act(a *actor, r *policy.Request, lo, hi int) (illegal int) {
	logits := a.columns(a.layout.policy)
	if row := a.forbid(logits, &r.Mask, lo, hi); row >= 0 {
		return row
	}
	a.sample = kern.Sample{Rows: hi - lo, Actions: a.actions, Logits: logits, LD: a.block, Seed: r.Seed, Step: r.Step,
		Env: r.FirstEnv + uint32(lo), Greedy: r.Greedy, Action: r.Action[lo:hi], LogProb: r.LogProb[lo:hi], Scratch: a.scratch}
	a.set.Sample(&a.sample)
	a.correct(r, lo, hi)
	return -1
}

// forbid makes the logits of masked actions impossible. It returns the first row without a legal action, or -1.
func (a *actor) forbid(logits []float32, mask *trajectory.Matrix, lo, hi int) int {
	if mask.Rows == 0 {
		return -1
	}
	for row := lo; row < hi; row++ {
		legal := false
		for j := range a.actions {
			if mask.Data[row*mask.StrideRow+j*mask.StrideElem] != 0 {
				legal = true
				continue
			}
			logits[j*a.block+row-lo] = kern.Illegal
		}
		if !legal {
			return row
		}
	}
	return -1
}

// correct replaces illegal actions, which only logits that are not numbers can bring about. The mask is the
// guest's, and may have changed: its legal actions are looked at again, but nothing depends on there being one.
func (a *actor) correct(r *policy.Request, lo, hi int) {
	if r.Mask.Rows == 0 {
		return
	}
	for row := lo; row < hi; row++ {
		mask := r.Mask.Data[row*r.Mask.StrideRow:]
		if mask[int(r.Action[row])*r.Mask.StrideElem] != 0 {
			continue
		}
		for j := range a.actions {
			if mask[j*r.Mask.StrideElem] != 0 {
				r.Action[row] = int32(j)
				break
			}
		}
	}
}

func (categorical) begin(s *shard, c *ppo.Config, r ppo.Rates, rows int) {
	mean := 1 / float64(rows)
	bound := float32(math.Inf(1))
	if c.ValueClip > 0 {
		bound = float32(c.ValueClip)
	}
	s.loss = kern.Loss{Actions: s.actions, LD: s.block, NewLogProb: s.loss.NewLogProb, Scratch: s.scratch,
		Low: 1 - r.Clip, High: 1 + r.Clip, Clip: r.Clip, Mean: float32(mean),
		Entropy: float32(float64(r.Entropy) * mean), ValueCoef: float32(c.ValueCoef * mean), ValueClip: bound}
}

func (categorical) loss(s *shard, lo, hi int) {
	b, l, logits := s.batch, &s.loss, s.columns(s.layout.policy)
	if len(b.mask) > 0 {
		for row := lo; row < hi; row++ {
			for a, legal := range b.mask[row*s.actions : (row+1)*s.actions] {
				if legal == 0 {
					logits[a*s.block+row-lo] = kern.Illegal
				}
			}
		}
	}
	l.Rows, l.Logits, l.Value = hi-lo, logits, s.columns(s.layout.value)
	l.Action, l.OldLogProb, l.OldValue = b.action[lo:], b.logProb[lo:], b.value[lo:]
	l.Advantage, l.Return = b.advantage[lo:], b.ret[lo:]
	s.set.Loss(l)
}

func lossSums(s *kern.LossSums) ppo.LossSums {
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

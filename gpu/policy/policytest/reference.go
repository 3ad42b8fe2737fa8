package policytest

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Reference is a learner in float64, of the policy package's reference functions and nothing else.
type Reference struct {
	*policy.Graph
	dist   head.Dist
	config ppo.Config
	m, v   []float64
	steps  uint64
}

// NewReference returns the reference learner.
func NewReference(n policy.Network, params []float32, c ppo.Config) *Reference {
	d, err := n.Policy[0].Of()
	if err != nil {
		panic(err)
	}
	return &Reference{Graph: policy.NewGraph(&n, params), dist: d, config: c,
		m: make([]float64, len(params)), v: make([]float64, len(params))}
}

// Update is ppo.Learner's.
func (r *Reference) Update(d *policy.Dataset, rates ppo.Rates) (ppo.Stats, error) {
	var stats ppo.Stats
	var samples ppo.Samples
	var targets ppo.Targets
	var batch ppo.Minibatch
	if err := samples.Read(d, &r.Network); err != nil {
		return stats, err
	}
	for epoch := range r.config.Epochs {
		if err := r.target(d, &samples, &targets, epoch); err != nil {
			return stats, err
		}
		stats.ValidRows = float64(len(samples.Valid))
		stats.Epochs++
		if epoch == 0 {
			stats.ExplainedVariance = targets.ExplainedVariance(&samples)
		}
		order := append([]uint32(nil), samples.Valid...)
		ppo.Shuffle(d.Seed, d.Index, uint32(epoch), order)
		for rows, rest := []uint32(nil), order; len(rest) > 0; {
			rows, rest = ppo.NextMinibatch(rest, r.config.Minibatch)
			batch.Gather(d, &r.Network, &r.config, &samples, &targets, rows)
			sums, norms := r.step(&batch, rates)
			stats.Add(sums, batch.Rows, norms)
			if r.config.TargetKL > 0 && sums.ApproxKL/float64(batch.Rows) > r.config.TargetKL {
				stats.Finish()
				return stats, nil
			}
		}
	}
	stats.Finish()
	return stats, nil
}

func (r *Reference) target(d *policy.Dataset, s *ppo.Samples, t *ppo.Targets, epoch int) error {
	switch {
	case !r.config.VTrace:
		return t.GAE(d, &r.config)
	case epoch > 0 && r.config.Recompute == ppo.RecomputeDataset:
		return nil
	}
	rows := make([]uint32, d.Rows())
	for i := range rows {
		rows[i] = uint32(i)
	}
	obs := make([]float32, len(rows)*r.Network.Obs())
	d.GatherObs(&r.Network, rows, obs)
	logits, _ := r.Forward(obs, len(rows))
	newLogProb := make([]float32, len(rows))
	for i := range rows {
		newLogProb[i] = float32(LogProbs(r.dist, logits, s.Masks(i, i+1), i)[s.Action[i]])
	}
	return t.VTrace(d, &r.config, newLogProb)
}

// Gradient leaves the gradient of the loss of a minibatch in Grad and returns the loss's sums.
func (r *Reference) Gradient(b *ppo.Minibatch, rates ppo.Rates) ppo.LossSums {
	clear(r.Grad)
	logits, value := r.Forward(b.Obs, b.Rows)
	dLogits, dValue := make([]float64, len(logits)), make([]float64, len(value))
	sums := ppo.Loss(r.dist, b, &r.config, rates, logits, value, dLogits, dValue)
	r.Backward(dLogits, dValue)
	return sums
}

func (r *Reference) step(b *ppo.Minibatch, rates ppo.Rates) (ppo.LossSums, ppo.GradNorms) {
	sums := r.Gradient(b, rates)
	norms := ppo.ClipGrad(&r.config, r.Network.Params(), r.Grad)
	r.steps++
	ppo.Adam(&r.config, float64(rates.LearningRate), r.steps, r.Params, r.m, r.v, r.Grad)
	return sums, norms
}

// Loss returns the loss of a minibatch under the current parameters, for finite differences.
func (r *Reference) Loss(b *ppo.Minibatch, rates ppo.Rates) float64 {
	logits, value := r.Forward(b.Obs, b.Rows)
	s := ppo.Loss(r.dist, b, &r.config, rates, logits, value, make([]float64, len(logits)), make([]float64, len(value)))
	return (s.PolicyLoss + r.config.ValueCoef*s.ValueLoss - float64(rates.Entropy)*s.Entropy) / float64(b.Rows)
}

// LogProbs returns the log-probabilities of every action in row i of what a distribution is made from, under the row's mask.
func LogProbs(d head.Dist, params []float64, mask []byte, i int) []float64 {
	out := make([]float64, d.Values())
	for a := range out {
		out[a], _ = d.LogProb(params[i*d.Elems():(i+1)*d.Elems()], mask, int32(a))
	}
	return out
}

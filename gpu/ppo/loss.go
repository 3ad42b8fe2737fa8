package ppo

import (
	"math"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
)

// LossSums are sums over the rows of a minibatch, to be divided by their number.
type LossSums struct {
	PolicyLoss, ValueLoss, Entropy float64
	ApproxKL, OldApproxKL          float64
	Clipped                        float64 // rows with |ratio-1| > clip
	RatioError                     float64 // largest |ratio-1|
}

// Add adds the sums of other rows.
func (s *LossSums) Add(other LossSums) {
	s.PolicyLoss += other.PolicyLoss
	s.ValueLoss += other.ValueLoss
	s.Entropy += other.Entropy
	s.ApproxKL += other.ApproxKL
	s.OldApproxKL += other.OldApproxKL
	s.Clipped += other.Clipped
	s.RatioError = max(s.RatioError, other.RatioError)
}

// Loss is the reference of the loss that backends compute (Schulman et al. 2017), over the rows of m:
//
//	-mean(min(ratio·A, clip(ratio, 1-ε, 1+ε)·A)) + ValueCoef·½·mean((v - return)²) - Entropy·mean(entropy) + KLCoef·mean(kl)
//	+ BoundsLossCoef·mean(beyond)
//
// with ratio = exp(log π(a) - log_prob) and kl = ratio - 1 - log ratio, an estimator of the divergence of the policy from
// the one that acted. Illegal actions have probability 0 and enter nothing. With ValueClip the squared error is the
// larger of the errors of v and of value + clamp(v - value, ±ValueClip).
//
// Where actions estimate an entropy, its gradient counts with the ratio, at most 1+ε: actions that the policy would rarely
// draw now say nothing about its entropy.
//
// beyond is the result of BoundsLoss, which is in no sum.
//
// log π(a) and the entropy are sums over the actions. params is [Rows][elements] by action, the parameters of its
// distribution; value is [Rows]. The gradients of the loss with respect to both are written to dParams and dValue.
func Loss(dists []head.Dist, m *Minibatch, c *Config, r Rates, params [][]float64, value []float64, dParams [][]float64, dValue []float64) LossSums {
	var sums LossSums
	mean := 1 / float64(m.Rows)
	for i := range m.Rows {
		logProb, entropy := LogProb(dists, m.Actions, i, params)
		slope, dv := sums.AddRow(m, i, c, r, logProb, entropy, value[i])
		for k, d := range dists {
			width, action := d.Elems(), make([]float64, d.Size())
			m.Actions[k].Row(i, action)
			bonus := float64(r.Entropy)
			if head.EstimatesEntropy(d) {
				bonus *= EntropyWeight(m, i, r, logProb)
			}
			d.Gradient(dParams[k][i*width:(i+1)*width], params[k][i*width:(i+1)*width], m.Actions[k].Masks(i, i+1), action, -mean*slope, -mean*bonus)
			for e := range m.Actions[k].Edges {
				at := i*width + e
				dParams[k][at] += mean * c.BoundsLossCoef * 2 * beyond(&m.Actions[k].Edges[e], params[k][at]) * float64(m.Actions[k].Edges[e].Scale)
			}
		}
		dValue[i] = mean * c.ValueCoef * dv
	}
	return sums
}

// BoundsLoss returns the sum over the elements of Box actions of row i of how far their means, params, lie outside of their edges, in half
// ranges and squared.
func BoundsLoss(actions []Actions, i int, params [][]float64) (sum float64) {
	for k := range actions {
		width := 2 * len(actions[k].Edges)
		for e := range actions[k].Edges {
			x := beyond(&actions[k].Edges[e], params[k][i*width+e])
			sum += x * x
		}
	}
	return sum
}

// beyond is Edges.Beyond in half ranges.
func beyond(e *policy.Edges, mean float64) float64 {
	low, high := float64(e.Low), float64(e.High)
	return (mean - min(max(mean, low), high)) * float64(e.Scale)
}

// EntropyWeight is the weight of the gradient of an entropy that the actions of row i estimate, given their log-probability.
func EntropyWeight(m *Minibatch, i int, r Rates, logProb float64) float64 {
	return min(math.Exp(logProb-float64(m.LogProb[i])), 1+float64(r.Clip))
}

// LogProb is the reference of the joint log-probability and entropy of the actions of row i.
func LogProb(dists []head.Dist, actions []Actions, i int, params [][]float64) (logProb, entropy float64) {
	for k, d := range dists {
		width, action := d.Elems(), make([]float64, d.Size())
		actions[k].Row(i, action)
		l, h := d.LogProb(params[k][i*width:(i+1)*width], actions[k].Masks(i, i+1), action)
		logProb, entropy = logProb+l, entropy+h
	}
	return logProb, entropy
}

// AddRow adds row i of a minibatch, given the log-probability of its action, the entropy and the value. It returns the
// slopes of the surrogate, less the divergence's cost, over the log-probability, and of ½·error² over the value.
func (s *LossSums) AddRow(m *Minibatch, i int, c *Config, r Rates, logProb, entropy, value float64) (slope, dValue float64) {
	logRatio := logProb - float64(m.LogProb[i])
	ratio, advantage := math.Exp(logRatio), float64(m.Advantage[i])
	free := ratio * advantage
	clipped := min(max(ratio, 1-float64(r.Clip)), 1+float64(r.Clip)) * advantage
	if free <= clipped {
		slope = free
	}
	slope -= c.KLCoef * (ratio - 1)
	loss, dValue := valueLoss(c, value, float64(m.Value[i]), float64(m.Return[i]))
	s.PolicyLoss -= min(free, clipped)
	s.ValueLoss += loss
	s.Entropy += entropy
	s.ApproxKL += ratio - 1 - logRatio
	s.OldApproxKL -= logRatio
	s.RatioError = max(s.RatioError, math.Abs(ratio-1))
	if math.Abs(ratio-1) > float64(r.Clip) {
		s.Clipped++
	}
	return slope, dValue
}

// valueLoss returns ½·error² and its derivative over v.
func valueLoss(c *Config, v, old, ret float64) (loss, slope float64) {
	free := v - ret
	if c.ValueClip == 0 || math.Abs(v-old) <= c.ValueClip {
		return free * free / 2, free
	}
	clipped := old + math.Copysign(c.ValueClip, v-old) - ret
	if free*free >= clipped*clipped {
		return free * free / 2, free
	}
	return clipped * clipped / 2, 0
}

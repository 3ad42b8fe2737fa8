package ppo

import "math"

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

// PPOLoss is the reference of the loss that backends compute (Schulman et al. 2017), over the rows of m:
//
//	-mean(min(ratio·A, clip(ratio, 1-ε, 1+ε)·A)) + ValueCoef·½·mean((v - return)²) - Entropy·mean(entropy)
//
// with ratio = exp(log π(a) - log_prob). Illegal actions have probability 0 and enter nothing. With ValueClip the
// squared error is the larger one of v and of value + clamp(v - value, ±ValueClip).
//
// logits is [Rows][Actions], value [Rows]. The gradients of the loss with respect to both are written to dLogits
// and dValue.
func Loss(m *Minibatch, c *Config, r Rates, logits, value, dLogits, dValue []float64) LossSums {
	var sums LossSums
	actions := len(logits) / m.Rows
	mean := 1 / float64(m.Rows)
	logProbs := make([]float64, actions)
	for i := range m.Rows {
		row := logits[i*actions : (i+1)*actions]
		var mask []byte
		if len(m.Mask) > 0 {
			mask = m.Mask[i*actions : (i+1)*actions]
		}
		entropy := logSoftmax(row, mask, logProbs)
		logRatio := logProbs[m.Action[i]] - float64(m.LogProb[i])
		ratio, advantage := math.Exp(logRatio), float64(m.Advantage[i])
		free := ratio * advantage
		clipped := min(max(ratio, 1-float64(r.Clip)), 1+float64(r.Clip)) * advantage
		slope := 0.0 // of the surrogate over log π(a)
		if free <= clipped {
			slope = free
		}
		for j, logProb := range logProbs {
			if mask != nil && mask[j] == 0 {
				dLogits[i*actions+j] = 0
				continue
			}
			p := math.Exp(logProb)
			chosen := 0.0
			if int(m.Action[i]) == j {
				chosen = 1
			}
			// ∂log π(a)/∂logit_j = [a=j] - p_j;  ∂H/∂logit_j = -p_j (log p_j + H)
			dLogits[i*actions+j] = mean * (slope*(p-chosen) + float64(r.Entropy)*p*(logProb+entropy))
		}
		loss, dv := valueLoss(c, value[i], float64(m.Value[i]), float64(m.Return[i]))
		dValue[i] = mean * c.ValueCoef * dv

		sums.PolicyLoss -= min(free, clipped)
		sums.ValueLoss += loss
		sums.Entropy += entropy
		sums.ApproxKL += ratio - 1 - logRatio
		sums.OldApproxKL -= logRatio
		sums.RatioError = max(sums.RatioError, math.Abs(ratio-1))
		if math.Abs(ratio-1) > float64(r.Clip) {
			sums.Clipped++
		}
	}
	return sums
}

// logSoftmax writes the log-probabilities of legal actions and returns their entropy.
func logSoftmax(logits []float64, mask []byte, logProbs []float64) (entropy float64) {
	largest, sum := math.Inf(-1), 0.0
	for j, x := range logits {
		if mask == nil || mask[j] != 0 {
			largest = max(largest, x)
		}
	}
	for j, x := range logits {
		if mask == nil || mask[j] != 0 {
			sum += math.Exp(x - largest)
		}
	}
	for j, x := range logits {
		logProbs[j] = math.Inf(-1)
		if mask == nil || mask[j] != 0 {
			logProbs[j] = x - largest - math.Log(sum)
			entropy -= math.Exp(logProbs[j]) * logProbs[j]
		}
	}
	return entropy
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

package gorgonia

import "github.com/rlhost/rlhost/gpu/ppo"

// Loss returns the scalar that a minibatch's optimiser step descends. It may be called concurrently. Terms that PPOLoss
// does not have appear in no Stats.
type Loss func(in *LossInputs) (*Node, error)

// LossInputs has the inputs of a loss. Columns have shape [rows, 1]. Rows that pad the batch have the weight 0
// and finite contents, so that a term enters as SumAll(in.Weight, term).
type LossInputs struct {
	Logits   *Node // [rows, actions] as built, before the mask
	LogProbs *Node // [rows, actions] log-probabilities; of an illegal action about -1e30. Nil unless there is one Discrete action.
	Value    *Node // [rows, 1]

	Mask       *Node // [rows, actions] 1 legal, 0 illegal
	Action     *Node // [rows, actions] 1 for the action taken, else 0
	OldLogProb *Node // log-probability under the policy that acted
	OldValue   *Node // value that it gave
	Advantage  *Node // normalised if the configuration says so
	Return     *Node // target of the value
	Weight     *Node // 1/n for the n rows of the minibatch, 0 for padding

	// Rates of the schedules, one element per row, all equal.
	ClipLow, ClipHigh *Node // 1-Clip and 1+Clip
	Entropy           *Node // coefficient

	Config ppo.Config

	logProb, entropy *Node // [rows, 1] of joint actions
	beyond           *Node // [rows, 1] or nil: squared distances of means from their edges
	drift            *Node // [rows, 1] or nil: 0, with the gradient of the entropy that actions estimate
}

// LogProb returns the log-probability of the actions taken, [rows, 1].
func (in *LossInputs) LogProb() (*Node, error) { return caught(in.chosen) }

// EntropyRow returns the entropy of the actions, [rows, 1]. -log π(a) takes the place of a squashed Gaussian's, whose gradient is
// weighted with the ratio; see ppo.Loss.
func (in *LossInputs) EntropyRow() (*Node, error) { return caught(in.entropyRow) }

// PPOLoss is the default: the clipped surrogate (Schulman et al. 2017), less KLCoef times the divergence from the acting
// policy, minus the entropy bonus plus BoundsLossCoef times squared distances of means beyond bounds and ValueCoef times ½·MSE of the value, clipped around the old value if the configuration says so. It equals ppo.Loss.
func PPOLoss(in *LossInputs) (*Node, error) {
	return caught(func() *Node {
		row := sub(sub(in.valueRow(), in.surrogateRow()), mul(in.Entropy, in.entropyRow()))
		if coef := in.Config.BoundsLossCoef; coef > 0 && in.beyond != nil {
			row = add(row, scale(in.beyond, coef))
		}
		return sumAll(in.Weight, row)
	})
}

// surrogateRow returns the objective that the policy ascends.
func (in *LossInputs) surrogateRow() *Node {
	logRatio := sub(in.chosen(), in.OldLogProb)
	ratio := exp(logRatio)
	clipped := clamp(ratio, in.ClipLow, in.ClipHigh)
	surrogate := least(mul(ratio, in.Advantage), mul(clipped, in.Advantage))
	if in.Config.KLCoef == 0 {
		return surrogate
	}
	divergence := sub(sub(ratio, fill(ratio, 1)), logRatio)
	return sub(surrogate, scale(divergence, in.Config.KLCoef))
}

// chosen returns the log-probability of the action taken: the other terms of the sum are exactly 0.
func (in *LossInputs) chosen() *Node {
	if in.logProb != nil {
		return in.logProb
	}
	return sumRow(mul(in.LogProbs, in.Action))
}

// entropyRow returns -Σ p log p. An illegal action has p = 0 and a finite log p.
func (in *LossInputs) entropyRow() *Node {
	switch {
	case in.drift != nil:
		ratio := exp(sub(in.chosen(), in.OldLogProb))
		return add(in.entropy, mul(still(least(ratio, in.ClipHigh)), in.drift))
	case in.entropy != nil:
		return in.entropy
	}
	negative := scale(in.LogProbs, -1)
	return sumRow(mul(exp(in.LogProbs), negative))
}

func (in *LossInputs) valueRow() *Node {
	squared := square(sub(in.Value, in.Return))
	if clip := in.Config.ValueClip; clip > 0 {
		change := sub(in.Value, in.OldValue)
		near := add(in.OldValue, clamp(change, fill(change, -clip), fill(change, clip)))
		squared = most(squared, square(sub(near, in.Return)))
	}
	return scale(squared, 0.5*in.Config.ValueCoef)
}

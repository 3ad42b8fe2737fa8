package gorgonia

import (
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Loss is where a loss of one's own goes: it returns the scalar that a minibatch's optimiser step descends. It may
// be called concurrently. Parts of it that are not PPOLoss's appear in no Stats.
type Loss func(in *LossInputs) (*Node, error)

// LossInputs is what a loss is made from. Columns have shape [rows, 1]. Rows that only fill up the batch have the
// weight 0 and finite contents, so that a term enters as SumAll(in.Weight, term).
type LossInputs struct {
	Logits   *Node // [rows, actions] as built, before the mask
	LogProbs *Node // [rows, actions] log-probabilities; of an illegal action about -1e30
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
}

// PPOLoss is the default: the clipped surrogate (Schulman et al. 2017) minus the entropy bonus plus ValueCoef
// times ½·MSE of the value, clipped around the old value if the configuration says so. It equals policy's
// arithmetic.
func PPOLoss(in *LossInputs) (*Node, error) {
	var c calc
	row := c.sub(in.valueRow(&c), in.surrogateRow(&c))
	row = c.sub(row, c.mul(in.Entropy, in.entropyRow(&c)))
	loss := c.sumAll(in.Weight, row)
	return loss, c.err
}

func (in *LossInputs) surrogateRow(c *calc) *Node {
	ratio := c.exp(c.sub(in.chosen(c), in.OldLogProb))
	clipped := c.clamp(ratio, in.ClipLow, in.ClipHigh)
	return c.min(c.mul(ratio, in.Advantage), c.mul(clipped, in.Advantage))
}

func (in *LossInputs) valueRow(c *calc) *Node {
	squared := c.square(c.sub(in.Value, in.Return))
	if clip := in.Config.ValueClip; clip > 0 {
		change := c.sub(in.Value, in.OldValue)
		near := c.add(in.OldValue, c.clamp(change, c.fill(change, -clip), c.fill(change, clip)))
		squared = c.max(squared, c.square(c.sub(near, in.Return)))
	}
	return c.scale(squared, 0.5*in.Config.ValueCoef)
}

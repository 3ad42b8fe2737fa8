package gorgonia

import "math"

// illegal is added to the logits of illegal actions: far below every logit, far from overflow.
const illegal = -1e30

// logProbs returns the log-softmax of the legal actions. Adding illegal to a logit gives illegal itself, so that an
// illegal action's logit has no influence at all.
func logProbs(c *calc, logits, mask *Node) *Node {
	if c.err != nil {
		return nil
	}
	actions := logits.Shape()[1]
	forbid := c.scale(c.sub(c.fill(mask, 1), mask), illegal)
	legal := c.add(c.mul(logits, mask), forbid)
	shifted := c.sub(legal, c.spread(c.rowMax(legal), actions))
	return c.sub(shifted, c.spread(c.log(c.sumRow(c.exp(shifted))), actions))
}

// chosen returns the log-probability of the action taken: the other terms of the sum are exactly 0.
func (in *LossInputs) chosen(c *calc) *Node { return c.sumRow(c.mul(in.LogProbs, in.Action)) }

// entropyRow returns -Σ p log p. An illegal action has p = 0 and a finite log p.
func (in *LossInputs) entropyRow(c *calc) *Node {
	negative := c.scale(in.LogProbs, -1)
	return c.sumRow(c.mul(c.exp(in.LogProbs), negative))
}

// mostProbable returns the first of the most probable legal actions, which exists whatever the logits are.
func mostProbable(logProbs, mask []float32) int {
	best := -1
	for i, x := range logProbs {
		if mask[i] != 0 && (best < 0 || x > logProbs[best]) {
			best = i
		}
	}
	return best
}

// sample returns the first legal action whose cumulated probability exceeds u, or the last legal action.
func sample(logProbs, mask []float32, u float32) int {
	last, cumulated := 0, 0.0
	for i, x := range logProbs {
		if mask[i] == 0 {
			continue
		}
		last = i
		if cumulated += math.Exp(float64(x)); cumulated > float64(u) {
			break
		}
	}
	return last
}

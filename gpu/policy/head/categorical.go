package head

import (
	"fmt"
	"math"
)

// Categorical has one logit for each of N values; illegal values have probability 0 and their logits no influence.
type Categorical struct {
	N int `json:"n"`
}

var _ Dist = (*Categorical)(nil)

// Elems is N.
func (c *Categorical) Elems() int { return c.N }

// Values is N.
func (c *Categorical) Values() int { return c.N }

// String is such as categorical(2).
func (c *Categorical) String() string { return fmt.Sprintf("categorical(%d)", c.N) }

// softmax returns what is to be subtracted from logits for log-probabilities.
func softmax(logits []float64, mask []byte) (norm float64) {
	largest, sum := math.Inf(-1), 0.0
	for i, x := range logits {
		if legal(mask, i) {
			largest = max(largest, x)
		}
	}
	for i, x := range logits {
		if legal(mask, i) {
			sum += math.Exp(x - largest)
		}
	}
	return largest + math.Log(sum)
}

func legal(mask []byte, i int) bool { return mask == nil || mask[i] != 0 }

// LogProb is Dist's.
func (c *Categorical) LogProb(logits []float64, mask []byte, action int32) (logProb, entropy float64) {
	norm := softmax(logits, mask)
	for i, x := range logits {
		if legal(mask, i) {
			entropy -= math.Exp(x-norm) * (x - norm)
		}
	}
	if !legal(mask, int(action)) {
		return math.Inf(-1), entropy
	}
	return logits[action] - norm, entropy
}

// Sample returns the first legal value whose cumulated probability exceeds u, or else the last legal one.
func (c *Categorical) Sample(logits []float64, mask []byte, u float32) int32 {
	norm, last, below := softmax(logits, mask), 0, 0.0
	for i, x := range logits {
		if !legal(mask, i) {
			continue
		}
		last = i
		if below += math.Exp(x - norm); below > float64(u) {
			break
		}
	}
	return int32(last)
}

// Mode is Dist's.
func (c *Categorical) Mode(logits []float64, mask []byte) int32 {
	best := -1
	for i, x := range logits {
		if legal(mask, i) && (best < 0 || x > logits[best]) {
			best = i
		}
	}
	return int32(best)
}

// KL is Σ p (log p - log q) over the legal values.
func (c *Categorical) KL(p, q []float64, mask []byte) (sum float64) {
	pNorm, qNorm := softmax(p, mask), softmax(q, mask)
	for i := range p {
		if legal(mask, i) {
			sum += math.Exp(p[i]-pNorm) * (p[i] - pNorm - q[i] + qNorm)
		}
	}
	return sum
}

// Gradient is Dist's: ∂log π(a)/∂logit_i = [a=i] - p_i and ∂H/∂logit_i = -p_i (log p_i + H).
func (c *Categorical) Gradient(d, logits []float64, mask []byte, action int32, dLogProb, dEntropy float64) {
	norm := softmax(logits, mask)
	_, entropy := c.LogProb(logits, mask, action)
	for i, x := range logits {
		d[i] = 0
		if !legal(mask, i) {
			continue
		}
		p, chosen := math.Exp(x-norm), 0.0
		if int(action) == i {
			chosen = 1
		}
		d[i] = dLogProb*(chosen-p) - dEntropy*p*(x-norm+entropy)
	}
}

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

// Size is 1.
func (c *Categorical) Size() int { return 1 }

// Choices is N.
func (c *Categorical) Choices() int { return c.N }

// Continuous is false.
func (c *Categorical) Continuous() bool { return false }

// Draws is 1.
func (c *Categorical) Draws() int { return 1 }

// String is such as categorical(2).
func (c *Categorical) String() string { return fmt.Sprintf("categorical(%d)", c.N) }

// softmax returns the number to subtract from logits to get log-probabilities.
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
func (c *Categorical) LogProb(logits []float64, mask []byte, action []float64) (logProb, entropy float64) {
	norm, taken := softmax(logits, mask), int(action[0])
	for i, x := range logits {
		if legal(mask, i) {
			entropy -= math.Exp(x-norm) * (x - norm)
		}
	}
	if !legal(mask, taken) {
		return math.Inf(-1), entropy
	}
	return logits[taken] - norm, entropy
}

// Sample draws the first legal value whose cumulated probability exceeds u, or else the last legal one.
func (c *Categorical) Sample(logits []float64, mask []byte, u []float32, action []float64) {
	norm, last, below := softmax(logits, mask), 0, 0.0
	for i, x := range logits {
		if !legal(mask, i) {
			continue
		}
		last = i
		if below += math.Exp(x - norm); below > float64(u[0]) {
			break
		}
	}
	action[0] = float64(last)
}

// Mode is Dist's.
func (c *Categorical) Mode(logits []float64, mask []byte, action []float64) {
	best := -1
	for i, x := range logits {
		if legal(mask, i) && (best < 0 || x > logits[best]) {
			best = i
		}
	}
	action[0] = float64(best)
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
func (c *Categorical) Gradient(d, logits []float64, mask []byte, action []float64, dLogProb, dEntropy float64) {
	norm := softmax(logits, mask)
	_, entropy := c.LogProb(logits, mask, action)
	for i, x := range logits {
		d[i] = 0
		if !legal(mask, i) {
			continue
		}
		p, chosen := math.Exp(x-norm), 0.0
		if int(action[0]) == i {
			chosen = 1
		}
		d[i] = dLogProb*(chosen-p) - dEntropy*p*(x-norm+entropy)
	}
}

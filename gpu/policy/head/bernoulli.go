package head

import "fmt"

// Bernoulli has a logit of the value 1 for each of N elements that are 0 or 1. It is MultiCategorical with the logit 0 for
// the value 0; the mask has two bytes for each element.
type Bernoulli struct {
	N int `json:"n"`
}

var _ Dist = (*Bernoulli)(nil)

// Elems is N.
func (b *Bernoulli) Elems() int { return b.N }

// Size is N.
func (b *Bernoulli) Size() int { return b.N }

// Choices is 2N.
func (b *Bernoulli) Choices() int { return 2 * b.N }

// Continuous is false.
func (b *Bernoulli) Continuous() bool { return false }

// Draws is N.
func (b *Bernoulli) Draws() int { return b.N }

// String is such as bernoulli(3).
func (b *Bernoulli) String() string { return fmt.Sprintf("bernoulli(%d)", b.N) }

// pairs returns the same distribution with two logits for each element.
func (b *Bernoulli) pairs() *MultiCategorical {
	m := &MultiCategorical{}
	for range b.N {
		m.Counts = append(m.Counts, 2)
	}
	return m
}

func both(logits []float64) []float64 {
	all := make([]float64, 2*len(logits))
	for i, x := range logits {
		all[2*i+1] = x
	}
	return all
}

// LogProb is Dist's.
func (b *Bernoulli) LogProb(logits []float64, mask []byte, action []float64) (logProb, entropy float64) {
	return b.pairs().LogProb(both(logits), mask, action)
}

// Sample is Dist's.
func (b *Bernoulli) Sample(logits []float64, mask []byte, u []float32, action []float64) {
	b.pairs().Sample(both(logits), mask, u, action)
}

// Mode is Dist's.
func (b *Bernoulli) Mode(logits []float64, mask []byte, action []float64) {
	b.pairs().Mode(both(logits), mask, action)
}

// KL is Dist's.
func (b *Bernoulli) KL(p, q []float64, mask []byte) float64 {
	return b.pairs().KL(both(p), both(q), mask)
}

// Gradient is Dist's.
func (b *Bernoulli) Gradient(d, logits []float64, mask []byte, action []float64, dLogProb, dEntropy float64) {
	all := make([]float64, 2*b.N)
	b.pairs().Gradient(all, both(logits), mask, action, dLogProb, dEntropy)
	for i := range d {
		d[i] = all[2*i+1]
	}
}

package head

import "fmt"

// MultiCategorical has a categorical distribution for each element of an action: element i has Counts[i] values. Logits,
// like the mask, are ordered by element.
type MultiCategorical struct {
	Counts []int `json:"counts"`
}

var _ Dist = (*MultiCategorical)(nil)

// Elems is the sum of Counts.
func (m *MultiCategorical) Elems() int {
	sum := 0
	for _, n := range m.Counts {
		if n < 1 {
			return 0
		}
		sum += n
	}
	return sum
}

// Size is the number of elements.
func (m *MultiCategorical) Size() int { return len(m.Counts) }

// Choices is the sum of Counts.
func (m *MultiCategorical) Choices() int { return m.Elems() }

// Continuous is false.
func (m *MultiCategorical) Continuous() bool { return false }

// Draws is one for each element.
func (m *MultiCategorical) Draws() int { return len(m.Counts) }

// String is such as multi_categorical([3 2]).
func (m *MultiCategorical) String() string { return fmt.Sprintf("multi_categorical(%v)", m.Counts) }

// each calls do with every element's distribution and where its logits begin.
func (m *MultiCategorical) each(do func(i, at int, c *Categorical)) {
	at := 0
	for i, n := range m.Counts {
		do(i, at, &Categorical{N: n})
		at += n
	}
}

// part returns the mask of n values from at on.
func part(mask []byte, at, n int) []byte {
	if mask == nil {
		return nil
	}
	return mask[at : at+n]
}

// LogProb is Dist's: sums over the elements.
func (m *MultiCategorical) LogProb(logits []float64, mask []byte, action []float64) (logProb, entropy float64) {
	m.each(func(i, at int, c *Categorical) {
		l, h := c.LogProb(logits[at:at+c.N], part(mask, at, c.N), action[i:i+1])
		logProb, entropy = logProb+l, entropy+h
	})
	return logProb, entropy
}

// Sample is Dist's.
func (m *MultiCategorical) Sample(logits []float64, mask []byte, u []float32, action []float64) {
	m.each(func(i, at int, c *Categorical) {
		c.Sample(logits[at:at+c.N], part(mask, at, c.N), u[i:i+1], action[i:i+1])
	})
}

// Mode is Dist's.
func (m *MultiCategorical) Mode(logits []float64, mask []byte, action []float64) {
	m.each(func(i, at int, c *Categorical) {
		c.Mode(logits[at:at+c.N], part(mask, at, c.N), action[i:i+1])
	})
}

// KL is Dist's.
func (m *MultiCategorical) KL(p, q []float64, mask []byte) (sum float64) {
	m.each(func(i, at int, c *Categorical) {
		sum += c.KL(p[at:at+c.N], q[at:at+c.N], part(mask, at, c.N))
	})
	return sum
}

// Gradient is Dist's.
func (m *MultiCategorical) Gradient(d, logits []float64, mask []byte, action []float64, dLogProb, dEntropy float64) {
	m.each(func(i, at int, c *Categorical) {
		c.Gradient(d[at:at+c.N], logits[at:at+c.N], part(mask, at, c.N), action[i:i+1], dLogProb, dEntropy)
	})
}

package head

import (
	"math"
	"testing"
)

// dists lists a distribution a row, with parameters of a row and of another, and a mask.
var dists = []struct {
	dist Dist
	p, q []float64
	mask []byte
}{
	{&Categorical{N: 1}, []float64{3}, []float64{-1}, nil},
	{&Categorical{N: 4}, []float64{0.3, -1, 2, 0.1}, []float64{0, 1, 0.5, -0.7}, nil},
	{&Categorical{N: 4}, []float64{0.3, 9, 2, 0.1}, []float64{0, 1, 0.5, -0.7}, []byte{1, 0, 1, 1}},
}

// Entropy and divergence are sums over the actions' probabilities, which add up to 1; the mode has the largest.
func TestDistributionsAgreeWithTheirProbabilities(t *testing.T) {
	for _, c := range dists {
		sum, entropy, kl, largest := 0.0, 0.0, 0.0, 0.0
		for a := range c.dist.Choices() {
			action := []float64{float64(a)}
			p, told := c.dist.LogProb(c.p, c.mask, action)
			q, _ := c.dist.LogProb(c.q, c.mask, action)
			sum, largest = sum+math.Exp(p), max(largest, math.Exp(p))
			if !math.IsInf(p, -1) {
				entropy, kl = entropy-math.Exp(p)*p, kl+math.Exp(p)*(p-q)
			}
			if a == c.dist.Choices()-1 && math.Abs(told-entropy) > 1e-12 {
				t.Errorf("%v: entropy %v, want %v", c.dist, told, entropy)
			}
		}
		best := []float64{0}
		c.dist.Mode(c.p, c.mask, best)
		mode, _ := c.dist.LogProb(c.p, c.mask, best)
		if math.Abs(sum-1) > 1e-12 || math.Abs(c.dist.KL(c.p, c.q, c.mask)-kl) > 1e-12 || math.Exp(mode) != largest {
			t.Errorf("%v: probabilities add up to %v, divergence %v, want %v, mode %v of %v", c.dist, sum, c.dist.KL(c.p, c.q, c.mask), kl, math.Exp(mode), largest)
		}
	}
}

// Evenly spread numbers draw each action as often as its probability says.
func TestS20SamplesFollowTheProbabilities(t *testing.T) {
	const n = 400_000
	for _, c := range dists {
		drawn, action := make([]float64, c.dist.Choices()), []float64{0}
		for i := range n {
			c.dist.Sample(c.p, c.mask, []float32{(float32(i) + 0.5) / n}, action)
			drawn[int(action[0])]++
		}
		for a, got := range drawn {
			logProb, _ := c.dist.LogProb(c.p, c.mask, []float64{float64(a)})
			if want := n * math.Exp(logProb); math.Abs(got-want) > 3 {
				t.Errorf("%v: action %d is drawn %v times of %d, want %v", c.dist, a, got, n, want)
			}
		}
	}
}

func TestS20GradientsEqualFiniteDifferences(t *testing.T) {
	const h, dLogProb, dEntropy = 1e-6, 0.7, -1.3
	for _, c := range dists {
		action := []float64{0}
		c.dist.Mode(c.p, c.mask, action)
		loss := func() float64 {
			logProb, entropy := c.dist.LogProb(c.p, c.mask, action)
			return dLogProb*logProb + dEntropy*entropy
		}
		d := make([]float64, c.dist.Elems())
		c.dist.Gradient(d, c.p, c.mask, action, dLogProb, dEntropy)
		for i := range c.p {
			at := c.p[i]
			c.p[i] = at + h
			above := loss()
			c.p[i] = at - h
			below := loss()
			c.p[i] = at
			if want := (above - below) / (2 * h); math.Abs(d[i]-want) > 1e-8 {
				t.Errorf("%v: gradient %d = %v, want %v", c.dist, i, d[i], want)
			}
		}
	}
}

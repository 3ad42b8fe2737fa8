package head

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// dists lists a distribution a row, with parameters of a row and of another, and a mask.
var dists = []struct {
	dist   Dist
	p, q   []float64
	mask   []byte
	counts []int // values of each element; nil for a Box
}{
	{&Categorical{N: 1}, []float64{3}, []float64{-1}, nil, []int{1}},
	{&Categorical{N: 4}, []float64{0.3, -1, 2, 0.1}, []float64{0, 1, 0.5, -0.7}, nil, []int{4}},
	{&Categorical{N: 4}, []float64{0.3, 9, 2, 0.1}, []float64{0, 1, 0.5, -0.7}, []byte{1, 0, 1, 1}, []int{4}},
	{&MultiCategorical{Counts: []int{3, 2}}, []float64{0.3, 1, 2, 0.1, -2}, []float64{0, 1, 0.5, -0.7, 1}, nil, []int{3, 2}},
	{&MultiCategorical{Counts: []int{3, 2}}, []float64{0.3, 1, 2, 0.1, -2}, []float64{0, 1, 0.5, -0.7, 1}, []byte{1, 0, 1, 1, 1}, []int{3, 2}},
	{&Bernoulli{N: 3}, []float64{0.3, -1, 2}, []float64{0, 1, 0.5}, nil, []int{2, 2, 2}},
	{&Bernoulli{N: 2}, []float64{0.3, -1}, []float64{0, 1}, []byte{1, 1, 0, 1}, []int{2, 2}},
	{&Gaussian{N: 1}, []float64{0.7, -0.4}, []float64{-0.2, 0.3}, nil, nil},
	{&Gaussian{N: 3}, []float64{0.7, -2, 0, -0.4, 0.1, -1}, []float64{-0.2, 0, 1, 0.3, 0, 0.2}, nil, nil},
	{&Gaussian{N: 1, Squash: Tanh}, []float64{0.7, -0.4}, []float64{-0.2, 0.3}, nil, nil},
	{&Gaussian{N: 2, Squash: Tanh}, []float64{0.7, -2, -0.4, 0.1}, []float64{-0.2, 0, 0.3, 0}, nil, nil},
	{&Gaussian{N: 1, LogStd: Range{-1, 0.2}}, []float64{0.7, 0.3}, []float64{-0.2, -2}, nil, nil},
	{&Gaussian{N: 2, Squash: Tanh, LogStd: Range{-0.3, 1}}, []float64{0.7, -2, -0.4, 0.1}, []float64{-0.2, 0, 1.1, 0}, nil, nil},
}

// actions lists every action of elements with so many values.
func actions(counts []int) [][]float64 {
	all := [][]float64{{}}
	for _, n := range counts {
		var next [][]float64
		for _, a := range all {
			for v := range n {
				next = append(next, append(slices.Clone(a), float64(v)))
			}
		}
		all = next
	}
	return all
}

// Entropy and divergence are sums over the actions' probabilities, which add up to 1; the mode has the largest.
func TestDistributionsAgreeWithTheirProbabilities(t *testing.T) {
	for _, c := range dists {
		if c.counts == nil {
			continue
		}
		sum, entropy, kl, largest, told := 0.0, 0.0, 0.0, 0.0, 0.0
		for _, action := range actions(c.counts) {
			p, h := c.dist.LogProb(c.p, c.mask, action)
			q, _ := c.dist.LogProb(c.q, c.mask, action)
			sum, largest, told = sum+math.Exp(p), max(largest, math.Exp(p)), h
			if !math.IsInf(p, -1) {
				entropy, kl = entropy-math.Exp(p)*p, kl+math.Exp(p)*(p-q)
			}
		}
		best := make([]float64, c.dist.Size())
		c.dist.Mode(c.p, c.mask, best)
		mode, _ := c.dist.LogProb(c.p, c.mask, best)
		if math.Abs(sum-1) > 1e-12 || math.Abs(told-entropy) > 1e-12 || math.Abs(c.dist.KL(c.p, c.q, c.mask)-kl) > 1e-12 ||
			math.Abs(math.Exp(mode)-largest) > 1e-12 {
			t.Errorf("%v: probabilities add up to %v, entropy %v, want %v, divergence %v, want %v, mode %v of %v", c.dist, sum, told,
				entropy, c.dist.KL(c.p, c.q, c.mask), kl, math.Exp(mode), largest)
		}
	}
}

// The same for densities, by integrals over one element; of a squashed one over the environment's actions.
func TestDensitiesIntegrateToOne(t *testing.T) {
	for _, c := range dists {
		if c.counts != nil || c.dist.Size() > 1 {
			continue
		}
		squash := c.dist.(*Gaussian).Squash
		const dx = 1e-4
		sum, entropy, kl := 0.0, 0.0, 0.0
		for x := -12.0; x < 12; x += dx {
			p, _ := c.dist.LogProb(c.p, nil, []float64{x})
			q, _ := c.dist.LogProb(c.q, nil, []float64{x})
			dy := dx
			if squash == Tanh {
				dy *= 1 / (math.Cosh(x) * math.Cosh(x))
			}
			mass := math.Exp(p) * dy
			sum, entropy, kl = sum+mass, entropy-mass*p, kl+mass*(p-q)
		}
		_, told := c.dist.LogProb(c.p, nil, []float64{0.3})
		if squash == Tanh { // -log π(a) estimates it
			entropy, _ = c.dist.LogProb(c.p, nil, []float64{0.3})
			entropy = -entropy
		}
		if math.Abs(sum-1) > 1e-6 || math.Abs(told-entropy) > 1e-6 || math.Abs(c.dist.KL(c.p, c.q, nil)-kl) > 1e-6 {
			t.Errorf("%v: mass %v, entropy %v, want %v, divergence %v, want %v", c.dist, sum, told, entropy, c.dist.KL(c.p, c.q, nil), kl)
		}
	}
}

const draws = 400_000

// sample draws actions with numbers of one seed.
func sample(d Dist, params []float64, mask []byte, see func(action []float64)) {
	r := rand.New(rand.NewPCG(7, 0))
	u, action := make([]float32, d.Draws()), make([]float64, d.Size())
	for range draws {
		for i := range u {
			u[i] = (float32(r.Uint32()>>9) + 0.5) * 0x1p-23
		}
		d.Sample(params, mask, u, action)
		see(action)
	}
}

// χ² of the numbers of all actions is below its quantile of 0.999 for so many degrees of freedom.
func TestS20SamplesFollowTheProbabilities(t *testing.T) {
	limits := []float64{0, 10.83, 13.82, 16.27, 18.47, 20.52, 22.46, 24.32}
	for _, c := range dists {
		if c.counts == nil {
			continue
		}
		all := actions(c.counts)
		drawn := make([]float64, len(all))
		sample(c.dist, c.p, c.mask, func(action []float64) {
			number := 0
			for i, n := range c.counts {
				number = number*n + int(action[i])
			}
			drawn[number]++
		})
		chi, freedom := 0.0, -1
		for i, action := range all {
			logProb, _ := c.dist.LogProb(c.p, c.mask, action)
			got, want := drawn[i], draws*math.Exp(logProb)
			if want == 0 {
				if got > 0 {
					t.Errorf("%v: %v is illegal and was drawn", c.dist, action)
				}
				continue
			}
			chi, freedom = chi+(got-want)*(got-want)/want, freedom+1
		}
		if chi > limits[freedom] {
			t.Errorf("%v: χ² = %v with %d degrees of freedom", c.dist, chi, freedom)
		}
	}
}

// The largest distance between the distribution functions of the draws and of the normal distribution is below the
// quantile of 0.999 of Kolmogorov and Smirnov's; the elements of a pair do not correlate.
func TestS20SamplesOfABoxFollowTheDensity(t *testing.T) {
	for _, c := range dists {
		if c.counts != nil {
			continue
		}
		n := c.dist.Size()
		z, products := make([][]float64, n), 0.0
		sample(c.dist, c.p, nil, func(action []float64) {
			for i, x := range action {
				z[i] = append(z[i], (x-c.p[i])*math.Exp(-c.dist.(*Gaussian).logStd(c.p, i)))
			}
			products += z[0][len(z[0])-1] * z[n-1][len(z[0])-1]
		})
		if n > 1 && math.Abs(products/draws) > 4/math.Sqrt(draws) {
			t.Errorf("%v: the first and the last element correlate by %v", c.dist, products/draws)
		}
		for i := range z {
			slices.Sort(z[i])
			worst := 0.0
			for k, x := range z[i] {
				worst = max(worst, math.Abs(0.5*math.Erfc(-x/math.Sqrt2)-(float64(k)+0.5)/draws))
			}
			if limit := 1.95 / math.Sqrt(draws); worst > limit {
				t.Errorf("%v: element %d is %v from the normal distribution, want at most %v", c.dist, i, worst, limit)
			}
		}
	}
}

// An action of a squashed Gaussian moves with the parameters where its density estimates the entropy.
func TestS20GradientsEqualFiniteDifferences(t *testing.T) {
	const h, dLogProb, dEntropy = 1e-6, 0.7, -1.3
	for _, c := range dists {
		action := make([]float64, c.dist.Size())
		c.dist.Mode(c.p, c.mask, action)
		if c.counts == nil { // where the gradient over the mean is not 0
			action[0] += 0.8
		}
		before := slices.Clone(c.p)
		loss := func() float64 {
			logProb, entropy := c.dist.LogProb(c.p, c.mask, action)
			if g, ok := c.dist.(*Gaussian); ok && g.Squash == Tanh {
				_, entropy = g.LogProb(c.p, nil, drawnAnew(g, before, c.p, action))
			}
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

// drawnAnew returns the action that the same random numbers give under other parameters.
func drawnAnew(g *Gaussian, before, params, action []float64) []float64 {
	again := make([]float64, g.N)
	for i, x := range action {
		again[i] = params[i] + math.Exp(g.logStd(params, i)-g.logStd(before, i))*(x-before[i])
	}
	return again
}

// The effect of a bonus alone on a squashed Gaussian: the entropy of values between -1 and 1 is log 2 at most. Learning
// from older policies' draws approaches the maximum for a tanh of normal numbers, and stays there.
func TestS20AnEntropyBonusSpreadsSquashedActions(t *testing.T) {
	g := &Gaussian{N: 1, Squash: Tanh}
	r := rand.New(rand.NewPCG(7, 0))
	params, d, action := []float64{1, -2}, make([]float64, 2), make([]float64, 1)
	entropy := 0.0
	for dataset := range 400 {
		drawn := make([]float64, 256)
		entropy = 0
		for i := range drawn {
			drawn[i] = params[0] + math.Exp(params[1])*r.NormFloat64()
			action[0] = drawn[i]
			_, h := g.LogProb(params, nil, action)
			entropy += h / float64(len(drawn))
		}
		for range 4 { // epochs, away from the policy that drew
			sum := [2]float64{}
			for _, x := range drawn {
				action[0] = x
				g.Gradient(d, params, nil, action, 0, 1)
				sum[0], sum[1] = sum[0]+d[0], sum[1]+d[1]
			}
			for i := range params {
				params[i] += 0.01 * sum[i] / float64(len(drawn))
			}
		}
		if dataset > 300 && !(entropy > 0.5 && entropy < 0.8) {
			t.Fatalf("dataset %d: entropy %v with mean %v and logarithm of the deviation %v, want about 0.66", dataset, entropy, params[0], params[1])
		}
	}
}

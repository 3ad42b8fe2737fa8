package policy

import "math"

// GradScale returns the factor that the gradient is multiplied with for a global-norm clip: 1 if maxNorm is 0 or
// the norm is within it, else maxNorm/(norm + 1e-6).
func GradScale(norm, maxNorm float64) float64 {
	if maxNorm == 0 || norm <= maxNorm {
		return 1
	}
	return maxNorm / (norm + 1e-6)
}

// Adam makes one optimiser step (Kingma & Ba 2015, as PyTorch computes it) on params and the moments m and v; step
// counts from 1.
//
//	m = β₁m + (1-β₁)g;  v = β₂v + (1-β₂)g²;  p -= lr/(1-β₁ᵗ) · m / (√v/√(1-β₂ᵗ) + ε)
func Adam(c *Config, rate float64, step uint64, params, m, v, grad []float64) {
	correct1 := 1 - math.Pow(c.AdamBeta1, float64(step))
	correct2 := math.Sqrt(1 - math.Pow(c.AdamBeta2, float64(step)))
	for i, g := range grad {
		m[i] = c.AdamBeta1*m[i] + (1-c.AdamBeta1)*g
		v[i] = c.AdamBeta2*v[i] + (1-c.AdamBeta2)*g*g
		params[i] -= rate / correct1 * m[i] / (math.Sqrt(v[i])/correct2 + c.AdamEps)
	}
}

package ppo

import (
	"math"
	"strings"

	"github.com/rlhost/rlhost/gpu/policy"
)

// GradNorms are the norms of a gradient before the clip. Where actor and critic share parameters, all three are the
// norm of all of it.
type GradNorms struct{ All, Actor, Critic float64 }

// Scales returns the factors of the clip for the actor's and for the critic's part of the gradient.
func (n GradNorms) Scales(c *Config) (actor, critic float64) {
	if !c.SeparateGradNorms {
		all := GradScale(n.All, c.MaxGradNorm)
		return all, all
	}
	return GradScale(n.Actor, c.MaxGradNorm), GradScale(n.Critic, c.MaxGradNorm)
}

// Apart reports whether actor and critic share nothing: every parameter's name begins with actor. or with critic.
func Apart(params []policy.Param) bool {
	for _, p := range params {
		if !ofActor(&p) && !strings.HasPrefix(p.Name, "critic.") {
			return false
		}
	}
	return true
}

func ofActor(p *policy.Param) bool { return strings.HasPrefix(p.Name, "actor.") }

// ClipGrad clips a gradient over params and returns its norms before. A gradient that is not finite has a norm that
// is not.
func ClipGrad(c *Config, params []policy.Param, grad []float64) GradNorms {
	var all, actor, critic float64
	for _, p := range params {
		part := &critic
		if ofActor(&p) {
			part = &actor
		}
		sum := *part
		for _, g := range grad[p.Offset : p.Offset+p.Rows*p.Cols] {
			all += g * g
			sum += g * g
		}
		*part = sum
	}
	n := GradNorms{All: math.Sqrt(all), Actor: math.Sqrt(actor), Critic: math.Sqrt(critic)}
	if !Apart(params) {
		n.Actor, n.Critic = n.All, n.All
	}
	actorScale, criticScale := n.Scales(c)
	for _, p := range params {
		scale := criticScale
		if ofActor(&p) {
			scale = actorScale
		}
		for i := range p.Rows * p.Cols {
			grad[p.Offset+i] *= scale
		}
	}
	return n
}

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

package policytest

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// clippedApart: the gradient is clipped as ppo.ClipGrad does, so that the actor's step does not depend on how large the
// critic's gradient is, unless they share parameters. The clipped gradient is the first moment after one step with
// β₁ = 0.
func (s *suite) clippedApart(t *testing.T) {
	d, params := s.stale(t)
	for i := range d.Blocks[0].Float32(trajectory.Reward) {
		d.Blocks[0].Float32(trajectory.Reward)[i] *= 1e4
	}
	c := s.config()
	c.Epochs, c.Minibatch, c.MaxGradNorm, c.AdamBeta1 = 1, d.Rows(), 0, 0
	free, stats := s.update(t, params, c, d, 1)
	clipped := func() ([]float64, ppo.GradNorms) {
		grad := make([]float64, len(params))
		for i, g := range free.AdamM {
			grad[i] = float64(g)
		}
		return grad, ppo.ClipGrad(&c, s.shape.net.Params(), grad)
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-4*(math.Abs(b)+1e-12) }
	_, norms := clipped()
	if !near(stats.GradNorm, norms.All) || !near(stats.ActorGradNorm, norms.Actor) || !near(stats.CriticGradNorm, norms.Critic) {
		t.Errorf("norms %v, %v of the actor, %v of the critic; the gradient's are %v",
			stats.GradNorm, stats.ActorGradNorm, stats.CriticGradNorm, norms)
	}
	if norms.Critic < 1e3 {
		t.Fatalf("the critic's gradient is %v: not large enough to matter", norms.Critic)
	}
	for _, c.MaxGradNorm = range []float64{norms.Critic / 4, max(norms.Actor/2, norms.Critic/1e6)} {
		for _, c.SeparateGradNorms = range []bool{false, true} {
			got, _ := s.update(t, params, c, d, 1)
			want, _ := clipped()
			for i, g := range got.AdamM {
				if !near(float64(g), want[i]) {
					t.Fatalf("max_grad_norm %v, apart = %t: gradient %d is %v, want %v", c.MaxGradNorm, c.SeparateGradNorms, i, g, want[i])
				}
			}
		}
	}
}

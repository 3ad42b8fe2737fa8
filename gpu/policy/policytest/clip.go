package policytest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// parts returns the norms of the actor's and of the critic's elements of a canonical vector.
func (s *suite) parts(vector []float32) (actor, critic float64) {
	for _, p := range s.shape.net.Params() {
		for _, x := range vector[p.Offset : p.Offset+p.Rows*p.Cols] {
			if strings.HasPrefix(p.Name, "actor.") {
				actor += float64(x) * float64(x)
			} else {
				critic += float64(x) * float64(x)
			}
		}
	}
	return math.Sqrt(actor), math.Sqrt(critic)
}

// clippedApart: the actor's step does not depend on how large the critic's gradient is, unless they share parameters.
// The clipped gradient is the first moment after one step with β₁ = 0.
func (s *suite) clippedApart(t *testing.T) {
	d, params := s.stale(t)
	for i := range d.Blocks[0].Float32(trajectory.Reward) {
		d.Blocks[0].Float32(trajectory.Reward)[i] *= 1e4
	}
	c := s.config()
	c.Epochs, c.Minibatch, c.MaxGradNorm, c.AdamBeta1 = 1, d.Rows(), 0, 0
	free, stats := s.update(t, params, c, d, 1)
	shared := !ppo.Apart(s.shape.net.Params())
	actor, critic := s.parts(free.AdamM)
	whole := math.Hypot(actor, critic)
	if shared {
		actor, critic = whole, whole
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-4*(math.Abs(b)+1e-12) }
	if !near(stats.GradNorm, whole) || !near(stats.ActorGradNorm, actor) || !near(stats.CriticGradNorm, critic) {
		t.Errorf("norms %v, %v of the actor, %v of the critic; the gradient's are %v, %v, %v",
			stats.GradNorm, stats.ActorGradNorm, stats.CriticGradNorm, whole, actor, critic)
	}
	if critic < 1e3 {
		t.Fatalf("the critic's gradient is %v: not large enough to matter", critic)
	}
	for _, c.MaxGradNorm = range []float64{critic / 4, max(actor/2, critic/1e6)} {
		c.ClipGradApart = false
		together, _ := s.update(t, params, c, d, 1)
		c.ClipGradApart = true
		apart, _ := s.update(t, params, c, d, 1)
		if shared {
			if !sameBits(apart, together) {
				t.Error("with a shared trunk, clip_grad_apart is not without effect")
			}
			continue
		}
		if actor > 0 && slices.Equal(apart.AdamM, together.AdamM) {
			t.Errorf("max_grad_norm %v: apart and together clip the same", c.MaxGradNorm)
		}
		for _, p := range s.shape.net.Params() {
			scale := ppo.GradScale(critic, c.MaxGradNorm)
			if strings.HasPrefix(p.Name, "actor.") {
				scale = ppo.GradScale(actor, c.MaxGradNorm)
			}
			for i := p.Offset; i < p.Offset+p.Rows*p.Cols; i++ {
				if want := scale * float64(free.AdamM[i]); !near(float64(apart.AdamM[i]), want) {
					t.Fatalf("max_grad_norm %v: gradient of %s is %v, want %v", c.MaxGradNorm, p.Name, apart.AdamM[i], want)
				}
			}
		}
	}
}

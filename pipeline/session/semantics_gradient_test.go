package session_test

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// loudly is uneven with rewards that many times as large.
func loudly(times float32) plugintest.Script {
	s := uneven()
	reward := s.Reward
	s.Reward = func(at plugintest.At) float32 { return times * reward(at) }
	return s
}

// Minibatches of 127 of 128 rows are two of 64, and no optimiser step is made with the one row that is left.
func TestS15MinibatchesAreNearlyEqualParts(t *testing.T) {
	halves := experiment{script: uneven(), sets: []string{"component.learner.minibatch=64"}}.must(t)
	most := experiment{script: uneven(), sets: []string{"component.learner.minibatch=127"}}.must(t)
	if !slices.Equal(most.hashes, halves.hashes) {
		t.Errorf("minibatches of at most 127 of 128 rows made %v optimiser steps, and others than those of 64",
			most.reported("losses/optimizer_steps"))
	}
}

// The policy learns as fast from rewards of any scale where its gradient is clipped by its own norm. Clipped together
// with the value's gradient it does not learn: the remaining gradient is below adam_eps.
func TestS18ActorAndCriticAreClippedApart(t *testing.T) {
	divergence := func(times float32, sets ...string) float64 {
		o := experiment{script: loudly(times), sets: append(sets, "component.learner.lr_anneal_env_steps=0")}.must(t)
		return slices.Max(o.reported("losses/approx_kl"))
	}
	const apart = "component.learner.separate_grad_norms=true"
	want := divergence(1)
	for _, times := range []float32{1, 1e3, 1e6} {
		if got := divergence(times, apart); !(got > want/3 && got < want*3) {
			t.Errorf("rewards × %v, clipped apart: approx_kl %v, with × 1 %v", times, got, want)
		}
	}
	if got := divergence(1e6); !(got < want/100) {
		t.Errorf("rewards × 1e6, clipped together: approx_kl %v, want a hundredth of %v at most", got, want)
	}
	share := func(sets ...string) string {
		o := experiment{script: uneven(), sets: append(sets, "policy.main.share_trunk=true")}.must(t)
		_, w, err := learner.Weights(o.states["learner"])
		if err != nil {
			t.Fatal(err)
		}
		return runs.ParamsHash(w.Params)
	}
	if share() != share(apart) {
		t.Error("with a shared trunk, separate_grad_norms changes what is learned")
	}
}

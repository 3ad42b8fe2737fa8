package policy_test

import (
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

func TestS6NormalizerHasTheMomentsOfAllValidRows(t *testing.T) {
	n := policy.MLP{Obs: 3, Actions: 2, NormalizeObs: true}.Network()
	z := policy.NewNormalizer(n.Obs())
	var seen [3][]float64
	for seed := range uint64(4) {
		d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5 + int(seed), Envs: 4, Blocks: 2,
			SoA: seed%2 == 1, InvalidEvery: 4, Seed: seed})
		if err := z.Update(d, &n); err != nil {
			t.Fatal(err)
		}
		var samples ppo.Samples
		if err := samples.Read(d, &n); err != nil {
			t.Fatal(err)
		}
		obs := make([]float32, len(samples.Valid)*n.Obs())
		raw := policy.MLP{Obs: 3, Actions: 2}.Network()
		d.GatherObs(&raw, samples.Valid, obs)
		for i, x := range obs {
			seen[i%3] = append(seen[i%3], float64(x))
		}
	}
	mean, scale := make([]float32, 3), make([]float32, 3)
	z.Weights(mean, scale)
	for i, xs := range seen {
		m, v := 0.0, 0.0
		for _, x := range xs {
			m += x / float64(len(xs))
		}
		for _, x := range xs {
			v += (x - m) * (x - m) / float64(len(xs))
		}
		if math.Abs(float64(mean[i])-m) > 1e-6 || math.Abs(float64(scale[i])-1/math.Sqrt(v)) > 1e-6 {
			t.Errorf("element %d: mean %v, scale %v; want %v, %v", i, mean[i], scale[i], m, 1/math.Sqrt(v))
		}
	}
}

func TestNormalizerStateSurvivesJSON(t *testing.T) {
	n := policy.MLP{Obs: 2, Actions: 2, NormalizeObs: true}.Network()
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5, Envs: 3, Blocks: 1, Seed: 1})
	z := policy.NewNormalizer(2)
	if err := z.Update(d, &n); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(z)
	if err != nil {
		t.Fatal(err)
	}
	back := new(policy.Normalizer)
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Update(d, &n), back.Update(d, &n)); err != nil {
		t.Fatal(err)
	}
	if back.Count != z.Count || back.Mean[1] != z.Mean[1] || back.M2[1] != z.M2[1] {
		t.Errorf("after JSON the normaliser goes on to %v, want %v", back, z)
	}
}

func TestNormalizerRefusesInfinities(t *testing.T) {
	n := policy.MLP{Obs: 2, Actions: 2, NormalizeObs: true}.Network()
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 5, Envs: 3, Blocks: 1, Seed: 1})
	d.Blocks[0].Float32(trajectory.Obs)[2*4+1] = float32(math.Inf(-1))
	z := policy.NewNormalizer(2)
	var row *policy.RowError
	if err := z.Update(d, &n); !errors.Is(err, policy.ErrNotFinite) || !errors.As(err, &row) || row.Row != 4 {
		t.Errorf("Update = %v, want ErrNotFinite in row 4", err)
	}
	mean, scale := make([]float32, 2), make([]float32, 2)
	z.Weights(mean, scale)
	if z.Count != 0 || mean[0] != 0 || scale[0] != 1 {
		t.Errorf("a refused dataset changed the normaliser to %v", z)
	}
}

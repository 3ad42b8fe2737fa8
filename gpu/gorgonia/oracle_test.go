package gorgonia_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// question is a random network with a random dataset that an older policy acted on.
type question struct {
	network policy.Network
	config  ppo.Config
	rates   ppo.Rates
	params  []float32
	dataset *policy.Dataset
}

func newQuestion(t *testing.T, seed uint64) question {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 20))
	activations := []policy.Activation{policy.Tanh, policy.ReLU, policy.ELU}
	mlp := policy.MLP{Obs: 1 + r.IntN(24), Actions: 1 + r.IntN(9), Activation: activations[r.IntN(3)],
		ShareTrunk: r.IntN(2) == 0, NormalizeObs: r.IntN(2) == 0, Heads: policy.Heads{PolicyGain: 1.5}}
	for range r.IntN(4) {
		mlp.Hidden = append(mlp.Hidden, 1+r.IntN(70))
	}
	n := mlp.Network()
	c := ppo.Defaults()
	c.ValueClip = float64(r.IntN(2)) * 0.2
	c.NormalizeAdvantage = r.IntN(3) > 0
	c.VTrace = r.IntN(3) == 0
	c.ValueCoef = r.Float64()
	q := question{network: n, config: c, params: policy.Init(&n, seed),
		rates: ppo.Rates{LearningRate: 1e-3, Clip: 0.05 + 0.3*r.Float32(), Entropy: 0.1 * r.Float32()}}
	q.dataset = policytest.Acted(t, gorgonia.New(), q.params, policytest.Options{Network: n, Steps: 1 + r.IntN(9),
		Envs: 1 + r.IntN(30), Blocks: 1 + r.IntN(2), Masked: r.IntN(2) == 0, InvalidEvery: 10, Seed: seed})
	for i := range q.params {
		q.params[i] += 0.03 * float32(r.NormFloat64())
	}
	return q
}

// gradient asks a backend for the gradient over the whole dataset: with β₁ = 0 and no clip it is the first moment
// after one step.
func (q *question) gradient(t *testing.T, b policy.Backend) []float32 {
	t.Helper()
	c := q.config
	c.Epochs, c.Minibatch, c.MaxGradNorm, c.AdamBeta1 = 1, q.dataset.Rows(), 0, 0
	l, err := ppo.NewLearner(b, &q.network, q.params, c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Update(q.dataset, q.rates); err != nil {
		t.Fatal(err)
	}
	s, err := l.State()
	if err != nil {
		t.Fatal(err)
	}
	return s.AdamM
}

func TestOracle_CPUBackendHasTheSameGradients(t *testing.T) {
	for seed := range uint64(30) {
		q := newQuestion(t, seed+1)
		name := fmt.Sprintf("seed %d: %+v", seed+1, q.network)
		want := q.gradient(t, gorgonia.New())
		got := q.gradient(t, cpu.New())
		for _, p := range q.network.Params() {
			end := p.Offset + p.Rows*p.Cols
			compareTensor(t, name+" "+p.Name, got[p.Offset:end], want[p.Offset:end])
		}
	}
}

// compareTensor allows a relative difference of 1e-4, and for elements near 0 as much of the tensor's root mean
// square, which is the size of the terms that cancel out in them.
func compareTensor(t *testing.T, name string, got, want []float32) {
	t.Helper()
	const tolerance = 1e-4
	squares := 0.0
	for _, w := range want {
		squares += float64(w) * float64(w)
	}
	size := math.Sqrt(squares / float64(len(want)))
	for i, w := range want {
		if diff := math.Abs(float64(got[i] - w)); !(diff <= tolerance*(math.Abs(float64(w))+size)) {
			t.Errorf("%s: gradient of element %d = %v, oracle %v", name, i, got[i], w)
			return
		}
	}
}

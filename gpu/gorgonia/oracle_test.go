package gorgonia_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
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

// kinds are the kinds of actions of random networks, each of a random size.
var kinds = []struct {
	name string
	draw func(r *rand.Rand) policy.Heads
}{
	{"Discrete", func(r *rand.Rand) policy.Heads { return drawn(discrete(r)) }},
	{"MultiDiscrete", func(r *rand.Rand) policy.Heads { return drawn(several(r)) }},
	{"MultiBinary", func(r *rand.Rand) policy.Heads { return drawn(binary(r)) }},
	{"Box", func(r *rand.Rand) policy.Heads { return drawn(box(r)) }},
	{"Box, deviations of the state", func(r *rand.Rand) policy.Heads {
		d := box(r)
		d.Gaussian.LogStd = head.Range{Min: -0.3, Max: 0.4}
		h := drawn(d)
		h.LogStd = policy.NetworkStd
		return h
	}},
	{"Tuple", func(r *rand.Rand) policy.Heads {
		h := drawn(box(r), discrete(r), several(r), binary(r))
		r.Shuffle(len(h.Policy), func(i, j int) { h.Policy[i], h.Policy[j] = h.Policy[j], h.Policy[i] })
		h.Policy = h.Policy[:2+r.IntN(3)]
		h.LogStd = []policy.LogStd{policy.ParameterStd, policy.NetworkStd}[r.IntN(2)]
		return h
	}},
}

func drawn(list ...policy.Dist) policy.Heads {
	return policy.Heads{Policy: list, PolicyGain: 1.5, LogStdInit: -0.4}
}

func discrete(r *rand.Rand) policy.Dist {
	return policy.Dist{Action: "choice", Start: int32(r.IntN(5) - 2), Categorical: &head.Categorical{N: 1 + r.IntN(9)}}
}

func several(r *rand.Rand) policy.Dist {
	counts := make([]int, 1+r.IntN(4))
	for i := range counts {
		counts[i] = 1 + r.IntN(6)
	}
	return policy.Dist{Action: "choices", MultiCategorical: &head.MultiCategorical{Counts: counts}}
}

func binary(r *rand.Rand) policy.Dist {
	return policy.Dist{Action: "switches", Bernoulli: &head.Bernoulli{N: 1 + r.IntN(6)}}
}

func box(r *rand.Rand) policy.Dist {
	d := policy.Dist{Action: "steer", Bounds: &policy.Bounds{Rescale: r.IntN(2) == 0},
		Gaussian: &head.Gaussian{N: 1 + r.IntN(5), Squash: []head.Squash{head.Free, head.Tanh}[r.IntN(2)]}}
	for range d.Gaussian.N {
		d.Bounds.Low, d.Bounds.High = append(d.Bounds.Low, -2*r.Float32()), append(d.Bounds.High, 0.5+r.Float32())
	}
	return d
}

// enter gives a network one to four inputs of random kinds and sizes.
func enter(r *rand.Rand, mlp *policy.MLP) {
	list := []policy.Input{
		{Path: "obs", Shape: []int{1 + r.IntN(24)}, Norm: []policy.Norm{"", policy.Running}[r.IntN(2)]},
		{Path: "frames", Shape: []int{1 + r.IntN(5)}, Stack: 2 + r.IntN(3)},
		{Path: "bytes", Shape: []int{1 + r.IntN(12)}, DType: "u8", Norm: policy.Scaled, Scale: 1.0 / 255},
		{Path: "choices", Shape: []int{1 + r.IntN(3)}, DType: "i32", Norm: policy.OneHot, Choices: []int{2 + r.IntN(70)}, Start: r.IntN(4) - 2},
		{Path: "last_reward", Shape: []int{}, From: policy.LastReward},
	}
	for _, i := range r.Perm(len(list) - 1)[:1+r.IntN(4)] {
		encoder := policy.Encoder{}
		switch r.IntN(3) {
		case 0:
			encoder = policy.Encoder{Kind: policy.EncodeMLP, Hidden: []int{1 + r.IntN(20)}, Activation: policy.Tanh}
		case 1:
			if list[i].Norm == policy.OneHot {
				encoder = policy.Encoder{Kind: policy.EncodeEmbed, Dim: 1 + r.IntN(9)}
			}
		}
		mlp.Inputs, mlp.Encoders = append(mlp.Inputs, list[i]), append(mlp.Encoders, encoder)
	}
	if r.IntN(2) == 0 {
		mlp.Inputs, mlp.Encoders = append(mlp.Inputs, list[len(list)-1]), append(mlp.Encoders, policy.Encoder{})
	}
}

func newQuestion(t *testing.T, seed uint64, heads func(r *rand.Rand) policy.Heads) question {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 20))
	activations := layer.Funcs()
	mlp := policy.MLP{Activation: activations[r.IntN(len(activations))], ShareTrunk: r.IntN(2) == 0, Heads: heads(r)}
	enter(r, &mlp)
	for range r.IntN(4) {
		mlp.Hidden = append(mlp.Hidden, 1+r.IntN(70))
	}
	n := mlp.Network()
	c := ppo.Defaults()
	c.ValueClip = float64(r.IntN(2)) * 0.2
	c.NormalizeAdvantage = r.IntN(3) > 0
	c.VTrace = r.IntN(3) == 0
	c.ValueCoef = r.Float64()
	c.BoundsLossCoef = 0.3 * r.Float64()
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
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			for seed := range uint64(10) {
				q := newQuestion(t, seed+1, kind.draw)
				name := fmt.Sprintf("seed %d: %v", seed+1, q.network)
				want := q.gradient(t, gorgonia.New())
				got := q.gradient(t, cpu.New())
				for _, p := range q.network.Params() {
					end := p.Offset + p.Rows*p.Cols
					compareTensor(t, name+" "+p.Name, got[p.Offset:end], want[p.Offset:end])
				}
			}
		})
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

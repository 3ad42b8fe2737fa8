package gorgonia

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// networks are small ones of every kind, down to tensors of one element.
func networks() []policy.Network {
	return []policy.Network{
		policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8, 8}, Activation: policy.Tanh}.Network(),
		policy.MLP{Obs: 3, Actions: 5, Hidden: []int{7}, Activation: policy.ELU, ShareTrunk: true}.Network(),
		policy.MLP{Obs: 6, Actions: 3, Hidden: []int{9, 5, 4}, Activation: policy.ReLU}.Network(),
		policy.MLP{Obs: 2, Actions: 4, Hidden: nil, Activation: policy.Tanh}.Network(),
		policy.MLP{Obs: 1, Actions: 1, Hidden: []int{1}, Activation: policy.Tanh}.Network(),
		policy.MLP{Obs: 1, Actions: 2, Hidden: []int{1, 1}, Activation: policy.ELU, ShareTrunk: true}.Network(),
		policy.MLP{Obs: 1, Actions: 2, Hidden: nil, Activation: policy.ReLU}.Network(),
	}
}

// fillInputs puts random numbers into the inputs of a program: masks with a legal action each, actions that are legal,
// ratios on both sides of the clip, and padding in the last quarter of the rows.
func fillInputs[F float](p *program[F], m *model, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	actions := m.network.Actions()
	for i := range p.obs {
		p.obs[i] = F(r.NormFloat64())
	}
	used := p.rows - p.rows/4
	t := &p.train
	for row := range p.rows {
		taken := r.IntN(actions)
		for a := range actions {
			p.mask[row*actions+a] = F(min(1, r.IntN(3)))
		}
		p.mask[row*actions+taken] = 1
		if t.action == nil {
			continue
		}
		t.action[row*actions+taken] = 1
		t.oldLogProb[row] = F(-math.Log(float64(actions)) + 0.4*r.NormFloat64())
		t.oldValue[row], t.returns[row] = F(r.NormFloat64()), F(r.NormFloat64())
		t.advantage[row] = F(r.NormFloat64())
		t.clipLow[row], t.clipHigh[row], t.entropy[row] = 0.8, 1.2, 0.03
		if row < used {
			t.weight[row] = 1 / F(used)
		}
	}
}

func randomParams[F float](n int, seed uint64) []F {
	r := rand.New(rand.NewPCG(seed, 2))
	params := make([]F, n)
	for i := range params {
		params[i] = F(float32(0.6 * r.NormFloat64()))
	}
	return params
}

func TestGradient_AgreesWithFiniteDifferences(t *testing.T) {
	for i, n := range networks() {
		for _, valueClip := range []float64{0, 0.3} {
			name := fmt.Sprintf("%d value_clip=%v", i, valueClip)
			t.Run(name, func(t *testing.T) {
				c := ppo.Defaults()
				c.ValueClip = valueClip
				m, err := newModel(&n, Graph{})
				if err != nil {
					t.Fatal(err)
				}
				checkGradient(t, m.learning(PPOLoss, c), uint64(i)+1)
			})
		}
	}
}

func checkGradient(t *testing.T, m *model, seed uint64) {
	t.Helper()
	params := randomParams[float64](m.size, seed)
	p, err := compile(m, params, 12)
	if err != nil {
		t.Fatal(err)
	}
	fillInputs(p, m, seed)
	before := slices.Clone(params)
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(params, before) {
		t.Errorf("a run changed the parameters")
	}
	got := slices.Clone(p.grad)
	loss := func() float64 {
		if err := p.run(); err != nil {
			t.Fatal(err)
		}
		return float64(*p.loss.(*gorgonia.F64))
	}
	const h = 1e-6
	for i := range params {
		keep := params[i]
		params[i] = keep + h
		up := loss()
		params[i] = keep - h
		down := loss()
		params[i] = keep
		want := (up - down) / (2 * h)
		if math.Abs(got[i]-want) > 1e-7+1e-6*math.Abs(want) {
			t.Errorf("seed %d: gradient of parameter %d = %.9g, finite difference %.9g", seed, i, got[i], want)
		}
	}
}

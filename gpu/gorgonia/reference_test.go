package gorgonia

import (
	"math"
	"math/rand/v2"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// randomBatch is a minibatch with a legal action in every row and ratios on both sides of the clip.
func randomBatch(n *policy.Network, rows int, masked bool, seed uint64) *ppo.Minibatch {
	r := rand.New(rand.NewPCG(seed, 30))
	b := &ppo.Minibatch{Rows: rows, Actions: []ppo.Actions{{ActionSize: n.Sizes().Actions[0]}}}
	actions := &b.Actions[0]
	for range rows {
		for range n.Obs() {
			b.Obs = append(b.Obs, float32(r.NormFloat64()))
		}
		taken := r.IntN(n.Actions())
		for a := range n.Actions() {
			if masked {
				actions.Mask = append(actions.Mask, byte(r.IntN(2)))
			}
			if masked && a == taken {
				actions.Mask[len(actions.Mask)-1] = 1
			}
		}
		actions.Index = append(actions.Index, int32(taken))
		b.LogProb = append(b.LogProb, float32(-math.Log(float64(n.Actions()))+0.4*r.NormFloat64()))
		b.Value = append(b.Value, float32(r.NormFloat64()))
		b.Advantage = append(b.Advantage, float32(r.NormFloat64()))
		b.Return = append(b.Return, float32(r.NormFloat64()))
	}
	return b
}

func TestGradient_AgreesWithTheReference(t *testing.T) {
	r := ppo.Rates{Clip: 0.2, Entropy: 0.03}
	for i, n := range append(networks(), wide()...) {
		for _, masked := range []bool{false, true} {
			c := ppo.Defaults()
			c.ValueClip = 0.3 * float64(i%2)
			b := randomBatch(&n, 37, masked, uint64(i))
			m, err := newModel(&n, Graph{})
			if err != nil {
				t.Fatal(err)
			}
			params := randomParams[float32](m.size, uint64(i))
			for j := range params {
				params[j] /= 4
			}
			compareReference(t, m.learning(PPOLoss, c), params, b, r)
		}
	}
}

func compareReference(t *testing.T, m *model, params []float32, b *ppo.Minibatch, r ppo.Rates) {
	t.Helper()
	p, err := compile(m, widen(params), b.Rows+5)
	if err != nil {
		t.Fatal(err)
	}
	p.load(m.joint, b, r, b.Rows)
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
	graph := policy.NewGraph(&m.network, params)
	heads, value := graph.Forward(b.Obs, b.Rows)
	dHeads, dValue := [][]float64{make([]float64, len(heads[0]))}, make([]float64, len(value))
	want := ppo.Loss(m.network.Dists(), b, &m.config, r, heads, value, dHeads, dValue)
	graph.Backward(dHeads, dValue)
	const tolerance = 1e-6 // rates and columns are float32 in one and float64 in the other
	for i, got := range p.grad {
		if math.Abs(got-graph.Grad[i]) > tolerance*(1+math.Abs(graph.Grad[i])) {
			t.Fatalf("%v: gradient %d = %v, reference %v", m.network, i, got, graph.Grad[i])
		}
	}
	got := p.sums(b, &m.config, r)
	pairs := map[string][2]float64{
		"policy loss": {got.PolicyLoss, want.PolicyLoss}, "value loss": {got.ValueLoss, want.ValueLoss},
		"entropy": {got.Entropy, want.Entropy}, "approx_kl": {got.ApproxKL, want.ApproxKL},
		"old_approx_kl": {got.OldApproxKL, want.OldApproxKL}, "clipped": {got.Clipped, want.Clipped},
		"ratio error": {got.RatioError, want.RatioError},
		"loss": {float64(*p.loss.(*gorgonia.F64)),
			(want.PolicyLoss + m.config.ValueCoef*want.ValueLoss - float64(r.Entropy)*want.Entropy) / float64(b.Rows)},
	}
	for name, pair := range pairs {
		if math.Abs(pair[0]-pair[1]) > tolerance*(1+math.Abs(pair[1])) {
			t.Errorf("%v: %s = %v, reference %v", m.network, name, pair[0], pair[1])
		}
	}
}

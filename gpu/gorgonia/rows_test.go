package gorgonia

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// wide are networks whose products gonum splits into blocks and spreads over processors.
func wide() []policy.Network {
	return []policy.Network{
		policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}.Network(),
		policy.MLP{Obs: 131, Actions: 70, Hidden: []int{200, 65}, Activation: policy.ELU}.Network(),
		policy.MLP{Obs: 65, Actions: 3, Hidden: []int{129}, Activation: policy.ReLU, ShareTrunk: true}.Network(),
	}
}

func TestRows_DoNotDependOnTheirGraph(t *testing.T) {
	for _, n := range append(wide(), networks()...) {
		m, err := newModel(&n, Graph{})
		if err != nil {
			t.Fatal(err)
		}
		params := randomParams[float32](m.size, 3)
		whole, err := compile(m, params, 512)
		if err != nil {
			t.Fatal(err)
		}
		fillInputs(whole, m, 4)
		if err := whole.run(); err != nil {
			t.Fatal(err)
		}
		for _, rows := range []int{1, 2, 8, 63, 64, 200} {
			compareRows(t, m, params, whole, rows)
		}
	}
}

// compareRows computes rows of whole again: in a graph of another size, with a loss, and at other places in it.
func compareRows(t *testing.T, m *model, params []float32, whole *program[float32], rows int) {
	t.Helper()
	part, err := compile(m.learning(PPOLoss, ppo.Defaults()), params, rows)
	if err != nil {
		t.Fatal(err)
	}
	fillInputs(part, m, 5)
	const first = 101
	obs, actions := m.network.Obs(), m.network.Actions()
	copy(part.obs, whole.obs[first*obs:(first+rows)*obs])
	copy(part.mask, whole.mask[first*actions:(first+rows)*actions])
	if err := part.run(); err != nil {
		t.Fatal(err)
	}
	if want := whole.logProbs[first*actions : (first+rows)*actions]; !slices.Equal(part.logProbs, want) {
		t.Errorf("%v: log-probabilities in a graph of %d rows differ from those in one of %d", m.network, rows, whole.rows)
	}
	if want := whole.value[first : first+rows]; !slices.Equal(part.value, want) {
		t.Errorf("%v: values in a graph of %d rows differ from those in one of %d", m.network, rows, whole.rows)
	}
}

package gorgonia

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
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

func TestS1ActorRowsDoNotDependOnTheirRequests(t *testing.T) {
	for _, n := range wide() {
		n.Inputs[0].Norm = policy.Running
		var want []float32
		var actions []int32
		for _, rows := range []int{300, 1, 7, 64, 150} {
			d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 2, Envs: 300, Blocks: 1, Masked: true, Seed: 6})
			a, err := policy.NewActor(New(), &n, rows)
			if err != nil {
				t.Fatal(err)
			}
			params := randomParams[float32](n.ParamCount(), 7)
			if err := a.Load(policy.Weights{Params: params, ObsMean: d.ObsMean, ObsScale: d.ObsScale}); err != nil {
				t.Fatal(err)
			}
			policytest.Act(t, a, d, rows)
			b := d.Blocks[0]
			got := append(slices.Clone(b.Float32(trajectory.LogProb)), b.Float32(trajectory.Value)...)
			if want == nil {
				want, actions = got, slices.Clone(b.Int32(trajectory.Action))
			}
			if !slices.Equal(got, want) || !slices.Equal(b.Int32(trajectory.Action), actions) {
				t.Errorf("%v: outputs of requests of %d rows differ from those of 300", n, rows)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestS6FirstRatioIsExactlyOne(t *testing.T) {
	for i, n := range append(wide(), networks()...) {
		for _, masked := range []bool{false, true} {
			n := n.Clone()
			if !masked {
				n.Inputs[0].Norm = policy.Running
			}
			t.Run(fmt.Sprintf("%d masked=%v normalised=%v", i, masked, n.NormalizeObs()), func(t *testing.T) {
				firstRatio(t, n, masked)
			})
		}
	}
}

func firstRatio(t *testing.T, n policy.Network, masked bool) {
	d := policytest.NewDataset(t, policytest.Options{Network: n, Steps: 3, Envs: 50, Blocks: 2, Masked: masked,
		InvalidEvery: 9, Seed: 8})
	params := randomParams[float32](n.ParamCount(), 9)
	a, err := policy.NewActor(New(), &n, 13)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Load(policy.Weights{Params: params, ObsMean: d.ObsMean, ObsScale: d.ObsScale}); err != nil {
		t.Fatal(err)
	}
	policytest.Act(t, a, d, 13)
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 1, 71
	l, err := ppo.NewLearner(New(), &n, params, c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stats, err := l.Update(d, ppo.Rates{LearningRate: 1e-3, Clip: 0.2})
	if err != nil {
		t.Fatal(err)
	}
	if stats.FirstRatioError != 0 || stats.FirstClipFraction != 0 {
		t.Errorf("first minibatch: ratio is up to %v away from 1, clip fraction %v", stats.FirstRatioError, stats.FirstClipFraction)
	}
}

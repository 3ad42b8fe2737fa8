package gorgonia

import (
	"errors"
	"strings"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// gated is a builder with operations that the default does not use: a sigmoid, a quotient, a root, a product of
// two layers, a layer norm's statistics.
type gated struct{}

func (gated) Params(n *policy.Network) []policy.Param {
	var params []policy.Param
	end := 0
	for _, p := range []policy.Param{{Name: "gate.weight", Rows: n.Obs(), Cols: 6}, {Name: "gate.bias", Rows: 1, Cols: 6},
		{Name: "in.weight", Rows: n.Obs(), Cols: 6}, {Name: "in.bias", Rows: 1, Cols: 6}, {Name: "gain", Rows: 1, Cols: 6},
		{Name: "logits.weight", Rows: 6, Cols: n.Actions()}, {Name: "logits.bias", Rows: 1, Cols: n.Actions()},
		{Name: "value.weight", Rows: 6, Cols: 1}, {Name: "value.bias", Rows: 1, Cols: 1}} {
		p.Offset = end
		end += p.Rows * p.Cols
		params = append(params, p)
	}
	return params
}

func (gated) Heads(n *policy.Network, obs *Node, p Params) (logits, value *Node, err error) {
	must := gorgonia.Must
	x := must(gorgonia.HadamardProd(must(p.Linear("in", obs)), must(gorgonia.Sigmoid(must(p.Linear("gate", obs))))))
	squares := must(SumRow(must(gorgonia.Square(x))))
	size := must(gorgonia.Sqrt(must(gorgonia.Add(squares, Constant(squares, 1e-3)))))
	x = must(gorgonia.HadamardDiv(x, must(Spread(size, 6))))
	x = must(gorgonia.HadamardProd(x, must(Repeat(must(p.Node("gain")), obs.Shape()[0]))))
	return must(p.Linear("logits", x)), must(p.Linear("value", x)), nil
}

// smooth is a loss with terms that PPO's does not have.
func smooth(in *LossInputs) (*Node, error) {
	must := gorgonia.Must
	error := must(gorgonia.Sub(in.Value, in.Return))
	huber := must(gorgonia.Sqrt(must(gorgonia.Add(must(gorgonia.Square(error)), Constant(error, 1)))))
	calm := must(SumRow(must(gorgonia.Square(in.Logits))))
	return gorgonia.Add(must(PPOLoss(in)), must(SumAll(in.Weight, must(gorgonia.Add(huber, calm)))))
}

func TestGradient_OfOtherLayersAndLossesAgreesWithFiniteDifferences(t *testing.T) {
	n := policy.MLP{Obs: 5, Actions: 3, Activation: policy.Tanh}.Network()
	m, err := newModel(&n, gated{})
	if err != nil {
		t.Fatal(err)
	}
	checkGradient(t, m.learning(smooth, ppo.Defaults()), 1)
}

// builderFunc is a builder with one parameter more than the default.
type builderFunc func(n *policy.Network, obs *Node, p Params) (logits, value *Node, err error)

func (builderFunc) Params(n *policy.Network) []policy.Param {
	return append(n.Params(), policy.Param{Name: "extra", Rows: 1, Cols: 1, Offset: n.ParamCount()})
}

func (f builderFunc) Heads(n *policy.Network, obs *Node, p Params) (logits, value *Node, err error) {
	return f(n, obs, p)
}

func TestBuilder_MistakesAreNamed(t *testing.T) {
	cases := []struct {
		name string
		f    builderFunc
		want string
	}{
		{"no nodes", func(n *policy.Network, obs *Node, p Params) (l, v *Node, err error) { return nil, nil, nil },
			"no node and no error"},
		{"a panic", func(n *policy.Network, obs *Node, p Params) (l, v *Node, err error) {
			return gorgonia.Must(p.Node("nothing")), nil, nil
		}, `no parameter "nothing"`},
		{"heads exchanged", func(n *policy.Network, obs *Node, p Params) (l, v *Node, err error) {
			l, v, err = Graph{}.Heads(n, obs, p)
			return v, l, err
		}, "logits of shape"},
		{"logits as value", func(n *policy.Network, obs *Node, p Params) (l, v *Node, err error) {
			l, _, err = Graph{}.Heads(n, obs, p)
			return l, l, err
		}, "value of shape"},
		{"an activation that does not exist", func(n *policy.Network, obs *Node, p Params) (l, v *Node, err error) {
			l, err = Activate(obs, "softsign")
			return l, v, err
		}, `activation "softsign"`},
		{"a parameter without influence", Graph{}.Heads, "does not depend on param extra"},
	}
	n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh}.Network()
	for _, c := range cases {
		_, err := ppo.NewLearner(&Backend{Builder: c.f}, &n, make([]float32, n.ParamCount()+1), ppo.Defaults())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	_, err := policy.NewActor(&Backend{Builder: cases[4].f}, &n, 8)
	if !errors.Is(err, policy.ErrUnsupported) {
		t.Errorf("NewActor with an unknown part = %v, want %v", err, policy.ErrUnsupported)
	}
}

// wrongLayout is a builder whose parameters have one mistake.
type wrongLayout struct {
	Graph
	edit func(params []policy.Param) []policy.Param
}

func (w wrongLayout) Params(n *policy.Network) []policy.Param { return w.edit(n.Params()) }

func TestBuilder_LayoutsThatAreNoneAreRefused(t *testing.T) {
	n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh}.Network()
	for name, edit := range map[string]func([]policy.Param) []policy.Param{
		"a gap":        func(p []policy.Param) []policy.Param { p[1].Offset++; return p },
		"an overlap":   func(p []policy.Param) []policy.Param { p[1].Offset--; return p },
		"no rows":      func(p []policy.Param) []policy.Param { p[0].Rows = 0; return p },
		"minus rows":   func(p []policy.Param) []policy.Param { p[0].Rows = -4; return p },
		"an overflow":  func(p []policy.Param) []policy.Param { p[0].Rows, p[0].Cols = 1<<62, 4; return p },
		"a name twice": func(p []policy.Param) []policy.Param { p[1].Name = p[0].Name; return p },
		"nothing":      func(p []policy.Param) []policy.Param { return nil },
		"a panic":      func(p []policy.Param) []policy.Param { panic(p) },
	} {
		if _, err := policy.NewActor(&Backend{Builder: wrongLayout{edit: edit}}, &n, 8); err == nil {
			t.Errorf("layout with %s: no error", name)
		}
	}
}

func TestLoss_MistakesAreNamed(t *testing.T) {
	n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh}.Network()
	for _, c := range []struct {
		name string
		loss Loss
		want string
	}{
		{"a column", func(in *LossInputs) (*Node, error) { return in.Value, nil }, "not a scalar"},
		{"nothing", func(in *LossInputs) (*Node, error) { return nil, nil }, "not a scalar"},
		{"an error", func(in *LossInputs) (*Node, error) { return nil, errors.New("my reason") }, "loss: my reason"},
		{"half of it", func(in *LossInputs) (*Node, error) { return SumAll(in.Weight, in.Value) },
			"does not depend on param actor.0.bias, param actor.0.weight, param actor.head.bias"},
		{"wrong shapes", func(in *LossInputs) (*Node, error) { return SumAll(in.Weight, in.Logits) }, "(8, 1) and (8, 2)"},
	} {
		_, err := ppo.NewLearner(&Backend{Loss: c.loss}, &n, policy.Init(&n, 1), ppo.Defaults())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("loss that returns %s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

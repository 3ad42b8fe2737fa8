package cpu_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

func TestBackendWithEveryKernelSet(t *testing.T) {
	for _, name := range []string{"generic", "avx2", "avx512"} {
		t.Run(name, func(t *testing.T) {
			b, err := cpu.NewWith(name)
			if err != nil {
				t.Skip(err)
			}
			policytest.TestBackend(t, b, policytest.Float32)
		})
	}
}

// A minibatch of a network that keeps a state is computed in blocks of whole chunks.
func TestChunksOfSeveralBlocks(t *testing.T) {
	n := recurrent()
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 1, 1280
	o := policytest.Options{Network: n, Steps: 16, Envs: 80, Blocks: 1, InvalidEvery: 30, Seed: 5}
	reference := policytest.NewReference(n, policy.Init(&n, 1), c)
	if _, err := reference.Update(policytest.Acted(t, cpu.New(), policy.Init(&n, 1), o), rates); err != nil {
		t.Fatal(err)
	}
	for i, got := range learn(t, cpu.New(), c, o) {
		if want := reference.Graph.Params[i]; math.Abs(float64(got)-want) > 2e-5 {
			t.Fatalf("parameter %d = %v, reference %v", i, got, want)
		}
	}
}

// recurrent is a network with a GRU and then an LSTM, learned in chunks of 16 rows.
func recurrent() policy.Network {
	n := policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{5}}},
		Nodes: []policy.Node{{Name: "trunk.lower", In: []string{"obs"}, GRU: &layer.GRU{Size: 40}},
			{Name: "trunk.upper", In: []string{"trunk.lower"}, LSTM: &layer.LSTM{Size: 33}}},
		Heads: policy.Heads{Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 3}}}}}.Network()
	n.Chunk = 16
	return n
}

// The two vector sets agree in every bit, so a run may move between machines with either, and tests of
// one hold for both.
func TestVectorKernelsLearnTheSameParameters(t *testing.T) {
	narrow, err := cpu.NewWith("avx2")
	if err != nil {
		t.Skip(err)
	}
	wide, err := cpu.NewWith("avx512")
	if err != nil {
		t.Skip(err)
	}
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 1, 100
	for name, o := range policytest.Cases {
		t.Run(name, func(t *testing.T) {
			if !slices.Equal(learn(t, narrow, c, o), learn(t, wide, c, o)) {
				t.Error("avx2 and avx512 learn different parameters")
			}
		})
	}
}

// normed puts a layer norm after every dense layer that an activation follows.
func normed(n policy.Network) policy.Network {
	var nodes []policy.Node
	for _, node := range n.Nodes {
		if node.Activation != nil {
			norm := policy.Node{Name: node.Name + ".norm", In: node.In, LayerNorm: &layer.LayerNorm{}}
			node.In = []string{norm.Name}
			nodes = append(nodes, norm)
		}
		nodes = append(nodes, node)
	}
	n.Nodes = nodes
	return n
}

var rates = ppo.Rates{LearningRate: 1e-3, Clip: 0.2, Entropy: 0.01}

// learn acts on a dataset, learns from it and returns the parameters.
func learn(t *testing.T, b *cpu.Backend, c ppo.Config, o policytest.Options) []float32 {
	t.Helper()
	params := policy.Init(&o.Network, 1)
	d := policytest.Acted(t, b, params, o)
	l, err := ppo.NewLearner(b, &o.Network, params, c)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.Update(d, rates); err != nil {
		t.Fatal(err)
	}
	if err := l.Params(params); err != nil {
		t.Fatal(err)
	}
	return params
}

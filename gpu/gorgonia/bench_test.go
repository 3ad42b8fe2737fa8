package gorgonia_test

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Each benchmark also runs the cpu backend, because only the ratio within one run means something.
func backends() []policy.Backend { return []policy.Backend{gorgonia.New(), cpu.New()} }

var benchNetworks = []policy.Network{
	policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}.Network(),
	policy.MLP{Obs: 64, Actions: 8, Hidden: []int{512, 512}, Activation: policy.Tanh}.Network(),
}

func benchName(n policy.Network, rows int, b policy.Backend) string {
	return fmt.Sprintf("net=%d-%d-%d/rows=%d/%s", n.Obs(), n.Nodes[0].Dense.Out, n.Nodes[2].Dense.Out, rows, b.Name())
}

// BenchmarkUpdate makes one optimiser step of rows rows per operation, forward pass to Adam.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range benchNetworks {
		params := policy.Init(&n, 1)
		for _, rows := range []int{64, 1024} {
			for _, backend := range backends() {
				b.Run(benchName(n, rows, backend), func(b *testing.B) {
					d := policytest.NewDataset(b, policytest.Options{Network: n, Steps: 16, Envs: rows / 16, Blocks: 1, Seed: 1})
					c := ppo.Defaults()
					c.Epochs, c.Minibatch = 1, rows
					l, err := ppo.NewLearner(backend, &n, params, c)
					if err != nil {
						b.Fatal(err)
					}
					defer l.Close()
					b.ReportAllocs()
					for b.Loop() {
						if _, err := l.Update(d, ppo.Rates{LearningRate: 1e-4, Clip: 0.2}); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkAct acts on rows rows per operation.
func BenchmarkAct(b *testing.B) {
	for _, n := range benchNetworks {
		params := policy.Init(&n, 1)
		for _, rows := range []int{1, 64} {
			for _, backend := range backends() {
				b.Run(benchName(n, rows, backend), func(b *testing.B) {
					d := policytest.NewDataset(b, policytest.Options{Network: n, Steps: 1, Envs: rows, Blocks: 1, Seed: 1})
					a, err := policy.NewActor(backend, &n, rows)
					if err != nil {
						b.Fatal(err)
					}
					defer a.Close()
					if err := a.Load(policy.Weights{Params: params}); err != nil {
						b.Fatal(err)
					}
					requests := policytest.Requests(&n, d, d.Blocks[0], 0, rows)
					b.ReportAllocs()
					for b.Loop() {
						if err := a.Act(requests); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkCompile prepares an actor or a learner: the cost of the first use of a number of rows.
func BenchmarkCompile(b *testing.B) {
	n := benchNetworks[0]
	params := policy.Init(&n, 1)
	b.Run("actor", func(b *testing.B) {
		for b.Loop() {
			if _, err := policy.NewActor(gorgonia.New(), &n, 8); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("learner", func(b *testing.B) {
		for b.Loop() {
			if _, err := ppo.NewLearner(gorgonia.New(), &n, params, ppo.Defaults()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

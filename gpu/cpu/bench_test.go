package cpu_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
)

var (
	small = policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}.Network()
	large = policy.MLP{Obs: 64, Actions: 8, Hidden: []int{512, 512}, Activation: policy.Tanh}.Network()
	box   = policy.MLP{Obs: 17, Hidden: []int{64, 64}, Activation: policy.Tanh, Heads: policy.Heads{Policy: []policy.Dist{{
		Action: "action", Gaussian: &head.Gaussian{N: 6}, Bounds: &policy.Bounds{Low: slices.Repeat([]float32{-1}, 6), High: slices.Repeat([]float32{1}, 6)}}}}}.Network()
)

// eachSet runs a benchmark with every kernel set of the machine.
func eachSet(b *testing.B, run func(b *testing.B, backend *cpu.Backend)) {
	for _, name := range []string{"avx512", "avx2", "generic"} {
		backend, err := cpu.NewWith(name)
		if err != nil {
			continue
		}
		b.Run("kernels="+name, func(b *testing.B) { run(b, backend) })
	}
}

func dims(n policy.Network) string {
	name := fmt.Sprintf("net=%d-%d-%d", n.Obs(), n.Nodes[0].Dense.Out, n.Nodes[2].Dense.Out)
	if g := n.Policy[0].Gaussian; g != nil {
		name += fmt.Sprintf("-box%d", g.N)
	}
	return name
}

// BenchmarkUpdate reports the time of one optimiser step: gather, forward, loss, backward, clip, Adam. Best is the
// fastest update of all, which a busy machine disturbs least.
func BenchmarkUpdate(b *testing.B) {
	for _, c := range []struct {
		net  policy.Network
		rows int
	}{{small, 64}, {small, 256}, {small, 1024}, {large, 1024}, {box, 1024}} {
		b.Run(fmt.Sprintf("%s/rows=%d", dims(c.net), c.rows), func(b *testing.B) {
			eachSet(b, func(b *testing.B, backend *cpu.Backend) { update(b, backend, c.net, c.rows, 1024) })
		})
	}
	b.Run(dims(small)+"-norms/rows=1024", func(b *testing.B) {
		eachSet(b, func(b *testing.B, backend *cpu.Backend) { update(b, backend, normed(small), 1024, 1024) })
	})
}

// BenchmarkLearners is BenchmarkUpdate by one learner and by two that divide each minibatch.
func BenchmarkLearners(b *testing.B) {
	for _, c := range []struct {
		net  policy.Network
		rows int
	}{{small, 64}, {small, 256}, {small, 1024}, {large, 128}, {large, 1024}} {
		for _, learners := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/rows=%d/learners=%d", dims(c.net), c.rows, learners), func(b *testing.B) {
				update(b, divided{cpu.New(), learners}, c.net, c.rows, 1024)
			})
		}
	}
}

func update(b *testing.B, backend policy.Backend, n policy.Network, rows, all int) {
	const envs = 32
	params := policy.Init(&n, 1)
	d := policytest.Acted(b, backend, params, policytest.Options{Network: n, Steps: all / envs, Envs: envs, Blocks: 1, Seed: 1})
	c := ppo.Defaults()
	c.Epochs, c.Minibatch = 1, rows
	learner, err := ppo.NewLearner(backend, &n, params, c)
	if err != nil {
		b.Fatal(err)
	}
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		if _, err := learner.Update(d, ppo.Rates{LearningRate: 1e-5, Clip: 0.2, Entropy: 0.01}); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	steps := float64(d.Rows() / rows)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/steps, "ns/step")
	b.ReportMetric(float64(best.Nanoseconds())/steps, "best-ns/step")
}

// images are networks that read pictures of Atari's size.
func images() map[policy.Kind]policy.Network {
	all := map[policy.Kind]policy.Network{}
	for kind, hidden := range map[policy.Kind]int{policy.NatureCNN: 512, policy.Impala: 256} {
		all[kind] = policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{84, 84, 4}, DType: "u8", Norm: policy.Scaled, Scale: 1.0 / 255}}, Heads: discrete(6),
			Nodes: kind.Nodes("trunk", "obs", []int{hidden}, policy.ReLU)}.Network()
	}
	return all
}

// discrete is the heads of one action of n values.
func discrete(n int) policy.Heads {
	return policy.Heads{Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: n}}}}
}

// BenchmarkImages reports the time of one optimiser step of 256 rows, and of acting for 64.
func BenchmarkImages(b *testing.B) {
	for _, kind := range []policy.Kind{policy.NatureCNN, policy.Impala} {
		b.Run(fmt.Sprintf("net=%s/step/rows=256", kind), func(b *testing.B) {
			eachSet(b, func(b *testing.B, backend *cpu.Backend) { update(b, backend, images()[kind], 256, 256) })
		})
		b.Run(fmt.Sprintf("net=%s/act/rows=64", kind), func(b *testing.B) {
			eachSet(b, func(b *testing.B, backend *cpu.Backend) { act(b, backend, images()[kind], 64) })
		})
	}
}

// memories are networks of two dense layers and a core after them, learned in chunks of 16 rows.
func memories() map[string]policy.Network {
	all := map[string]policy.Network{}
	for name, core := range map[string]policy.Node{"gru": {GRU: &layer.GRU{Size: 128}}, "lstm": {LSTM: &layer.LSTM{Size: 128}}} {
		core.Name, core.In = "trunk.core", []string{"trunk.1.activation"}
		var nodes []policy.Node
		last := "obs"
		for _, dense := range []string{"trunk.0", "trunk.1"} {
			nodes = append(nodes, policy.Node{Name: dense, In: []string{last}, Dense: &layer.Dense{Out: 64, Gain: 1}},
				policy.Node{Name: dense + ".activation", In: []string{dense}, Activation: &layer.Activation{Func: policy.Tanh}})
			last = dense + ".activation"
		}
		n := policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{4}}}, Heads: discrete(2), Nodes: append(nodes, core)}.Network()
		n.Chunk = 16
		all[name] = n
	}
	return all
}

// BenchmarkRecurrent reports the time of one optimiser step of 64 chunks of 16 rows, and of acting for 64 rows.
func BenchmarkRecurrent(b *testing.B) {
	for _, core := range []string{"gru", "lstm"} {
		n := memories()[core]
		b.Run(fmt.Sprintf("net=4-64-64-%s128/step/rows=1024", core), func(b *testing.B) {
			eachSet(b, func(b *testing.B, backend *cpu.Backend) { update(b, backend, n, 1024, 1024) })
		})
		b.Run(fmt.Sprintf("net=4-64-64-%s128/act/rows=64", core), func(b *testing.B) {
			eachSet(b, func(b *testing.B, backend *cpu.Backend) { act(b, backend, n, 64) })
		})
	}
}

// BenchmarkAct makes one request an iteration.
func BenchmarkAct(b *testing.B) {
	for _, n := range []policy.Network{small, large, box} {
		for _, rows := range []int{1, 16, 64, 512} {
			b.Run(fmt.Sprintf("%s/rows=%d", dims(n), rows), func(b *testing.B) {
				eachSet(b, func(b *testing.B, backend *cpu.Backend) { act(b, backend, n, rows) })
			})
		}
	}
}

func act(b *testing.B, backend *cpu.Backend, n policy.Network, rows int) {
	d := policytest.NewDataset(b, policytest.Options{Network: n, Steps: max(1, n.Chunk), Envs: rows, Blocks: 1, Seed: 1})
	actor, err := policy.NewActor(backend, &n, rows)
	if err != nil {
		b.Fatal(err)
	}
	if err := actor.Load(policy.Weights{Params: policy.Init(&n, 1)}); err != nil {
		b.Fatal(err)
	}
	requests := policytest.Requests(&n, d, d.Blocks[0], 0, rows)
	b.ReportAllocs()
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		start := time.Now()
		if err := actor.Act(requests); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(float64(best.Nanoseconds()), "best-ns/op")
}

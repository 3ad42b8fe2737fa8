package pytorchlearner

import (
	"cmp"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/hostabi/native"
)

var update = flag.Bool("update", false, "write testdata anew")

// reference is the content of one file besides its tensors before and after, the blobs block0, block1, ….
type reference struct {
	Table      table          `json:"table"`
	Nodes      policy.Network `json:"nodes"`
	Config     ppo.Config     `json:"config"`
	Rates      ppo.Rates      `json:"rates"`
	Seed       uint64         `json:"seed"`
	Index      uint64         `json:"index"`
	Normalizer []float32      `json:"normalizer"` // means, then scales
	Schema     *native.Schema `json:"schema"`
	Updates    int            `json:"updates"`
	Stats      ppo.Stats      `json:"stats"` // of the last one
	// LearningRate is the last step's, where it follows the divergence.
	LearningRate float32 `json:"learning_rate"`
}

// table is the policy's, as a learner in Python is given it.
type table struct {
	Net struct {
		Hidden     []int             `json:"hidden"`
		Activation policy.Activation `json:"activation"`
		Core       map[string]any    `json:"core,omitempty"`
		Chunk      int               `json:"chunk,omitempty"`
	} `json:"net"`
	ShareTrunk   bool `json:"share_trunk"`
	NormalizeObs bool `json:"normalize_obs"`
	Action       struct {
		LogStd     policy.LogStd `json:"log_std"`
		LogStdInit float64       `json:"log_std_init"`
		LogStdMin  float64       `json:"log_std_min,omitempty"`
		LogStdMax  float64       `json:"log_std_max,omitempty"`
		Squash     string        `json:"squash"`
		Rescale    bool          `json:"rescale"`
	} `json:"action"`
}

// tableOf returns the table that a network is made from. Boxes are drawn as box makes them.
func tableOf(m *policy.MLP, chunk int) (t table) {
	t.Net.Hidden, t.Net.Activation, t.ShareTrunk, t.NormalizeObs = m.Hidden, m.Activation, m.ShareTrunk, m.NormalizeObs
	if m.Core != nil {
		t.Net.Core, t.Net.Chunk = map[string]any{"kind": m.Core.Kind, "size": m.Core.Size}, chunk
	}
	t.Action.LogStd, t.Action.LogStdInit, t.Action.Squash, t.Action.Rescale = cmp.Or(m.LogStd, policy.ParameterStd), m.LogStdInit, "none", true
	for _, d := range m.Policy {
		if d.Gaussian == nil {
			continue
		}
		if d.Gaussian.Squash == head.Tanh {
			t.Action.Squash = "tanh"
		}
		t.Action.LogStdMin, t.Action.LogStdMax = d.Gaussian.LogStd.Min, d.Gaussian.LogStd.Max
	}
	return t
}

// chunk is how many rows networks with a core are learned from together.
const chunk = 4

// box is a Box action of n elements.
func box(n int, squash head.Squash) policy.Dist {
	bounds := policy.Bounds{Rescale: true}
	for range n {
		bounds.Low, bounds.High = append(bounds.Low, -2), append(bounds.High, 2)
	}
	return policy.Dist{Bounds: &bounds, Gaussian: &head.Gaussian{N: n, Squash: squash}}
}

// actions are the heads of an environment's actions.
func actions(std policy.LogStd, init float64, dists ...policy.Dist) policy.Heads {
	for i := range dists {
		dists[i].Action = policy.Numbered("action", i)
	}
	return policy.Heads{Policy: dists, LogStd: std, LogStdInit: init}
}

func references() map[string]func(t *testing.T) component.State {
	net := policy.MLP{Obs: 5, Actions: 3, Hidden: []int{12, 7}, Activation: policy.Tanh}
	return map[string]func(t *testing.T) component.State{
		"separate": func(t *testing.T) component.State {
			c := ppo.Defaults()
			c.Minibatch, c.Epochs = 16, 3
			return learned(t, net, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, Seed: 4})
		},
		"shared": func(t *testing.T) component.State {
			n := net
			n.ShareTrunk, n.NormalizeObs, n.Activation, n.Hidden = true, true, policy.ELU, []int{9}
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.ValueClip, c.TargetKL, c.NormalizeAdvantage = 13, 4, 0.1, 0.4, false
			return learned(t, n, c, policytest.Options{Steps: 6, Envs: 4, Blocks: 1, Masked: true, SoA: true, Seed: 9})
		},
		"vtrace": func(t *testing.T) component.State {
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace, c.RhoBar, c.CBar, c.VTraceRecompute = 13, 3, true, 1.2, 0.9, ppo.RecomputeEpoch
			c.SeparateGradNorms = true
			return learned(t, net, c, policytest.Options{Steps: 10, Envs: 2, Blocks: 2, Seed: 5})
		},
		"returns": func(t *testing.T) component.State {
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.NormalizeReturns, c.KLCoef = 16, 3, true, 0.3
			return learned(t, net, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Seed: 6})
		},
		"box": func(t *testing.T) component.State {
			n := net
			n.Heads = actions(policy.ParameterStd, -0.3, box(2, head.Free))
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.AdaptiveKL, c.SeparateGradNorms = 16, 3, 0.02, true
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, Seed: 7})
		},
		"bounded": func(t *testing.T) component.State { // deviations within their bounds, and means that cost beyond the action's bounds
			n, steer := net, box(2, head.Free)
			steer.Gaussian.LogStd = head.Range{Min: -0.2, Max: 0.3}
			n.Heads = actions(policy.NetworkStd, 0, steer)
			n.PolicyGain = 2
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.BoundsLossCoef = 16, 3, 0.2
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, Seed: 21})
		},
		"squashed": func(t *testing.T) component.State {
			n := net
			n.ShareTrunk, n.NormalizeObs, n.Heads = true, true, actions(policy.NetworkStd, 0, box(3, head.Tanh))
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace = 13, 3, true
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 1, SoA: true, Seed: 8})
		},
		"fixed": func(t *testing.T) component.State {
			n := net
			n.Heads = actions(policy.FixedStd, -0.5, box(1, head.Free))
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.AdaptiveKL = 16, 3, 1e-4
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Seed: 10})
		},
		"gru": func(t *testing.T) component.State {
			n := net
			n.ShareTrunk, n.NormalizeObs, n.Core = true, true, &policy.Core{Kind: policy.CoreGRU, Size: 6}
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.ValueClip = 13, 3, 0.1
			return learned(t, n, c, policytest.Options{Steps: 12, Envs: 3, Blocks: 2, Masked: true, InvalidEvery: 5, Seed: 11})
		},
		"lstm": func(t *testing.T) component.State {
			n := net
			n.Hidden, n.Core = []int{7}, &policy.Core{Kind: policy.CoreLSTM, Size: 5}
			n.Heads = actions(policy.ParameterStd, -0.2, box(2, head.Free))
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace, c.VTraceRecompute, c.SeparateGradNorms = 16, 3, true, ppo.RecomputeEpoch, true
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, SoA: true, Seed: 12})
		},
		"start": func(t *testing.T) component.State {
			n := net
			n.Heads = actions("", 0, policy.Dist{Start: -1, Categorical: &head.Categorical{N: 4}})
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.AdaptiveKL = 16, 3, 0.02
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Masked: true, InvalidEvery: 7, Seed: 13})
		},
		"multidiscrete": func(t *testing.T) component.State {
			n := net
			n.ShareTrunk, n.NormalizeObs = true, true
			n.Heads = actions("", 0, policy.Dist{Start: 2, MultiCategorical: &head.MultiCategorical{Counts: []int{3, 2, 5}}})
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace, c.VTraceRecompute = 13, 3, true, ppo.RecomputeEpoch
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Masked: true, SoA: true, Seed: 14})
		},
		"multibinary": func(t *testing.T) component.State {
			n := net
			n.Heads = actions("", 0, policy.Dist{Bernoulli: &head.Bernoulli{N: 4}})
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.KLCoef, c.SeparateGradNorms = 16, 3, 0.3, true
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Masked: true, InvalidEvery: 7, Seed: 15})
		},
		"several": func(t *testing.T) component.State {
			n := net
			n.Heads = actions(policy.ParameterStd, -0.3, box(2, head.Free), policy.Dist{Start: 1, Categorical: &head.Categorical{N: 3}},
				policy.Dist{Bernoulli: &head.Bernoulli{N: 2}}, box(1, head.Free))
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.AdaptiveKL, c.SeparateGradNorms = 16, 3, 0.02, true
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Masked: true, InvalidEvery: 7, Seed: 16})
		},
		"inputs": func(t *testing.T) component.State {
			n := net
			n.NormalizeObs, n.Inputs = true, []policy.Input{
				{Path: "arm", Shape: []int{2}, Norm: policy.Running}, {Path: "gear", Shape: []int{2}, DType: "i32", Norm: policy.OneHot, Choices: []int{3, 4}, Start: -1},
				{Path: "eye", Shape: []int{3}, DType: "u8", Norm: policy.Running}, {Path: "sign", Shape: []int{1}, DType: "i32", Norm: policy.OneHot, Choices: []int{5}}}
			c := ppo.Defaults()
			c.Minibatch, c.Epochs = 16, 3
			return learned(t, n, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, SoA: true, Seed: 18})
		},
		"turns": func(t *testing.T) component.State {
			n := net
			n.NormalizeObs, n.Heads = true, actions(policy.ParameterStd, -0.3, policy.Dist{Start: 1, Categorical: &head.Categorical{N: 3}}, box(2, head.Free))
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace = 16, 3, true
			return learnedInTurns(t, n, c, policytest.Options{Steps: 8, Envs: 5, Blocks: 2, Masked: true, InvalidEvery: 7, Seed: 19})
		},
		"turns_lstm": func(t *testing.T) component.State {
			n := net
			n.Core = &policy.Core{Kind: policy.CoreLSTM, Size: 5}
			c := ppo.Defaults()
			c.Minibatch, c.Epochs = 32, 3
			return learnedInTurns(t, n, c, policytest.Options{Steps: 12, Envs: 4, Blocks: 2, Masked: true, SoA: true, InvalidEvery: 7, Seed: 20})
		},
		"accumulated": func(t *testing.T) component.State {
			c := ppo.Defaults()
			c.Minibatch, c.Accumulate, c.Epochs, c.SeparateGradNorms = 7, 3, 3, true
			return learned(t, net, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, Seed: 22})
		},
		"accumulated_lstm": func(t *testing.T) component.State {
			n := net
			n.Core = &policy.Core{Kind: policy.CoreLSTM, Size: 5}
			c := ppo.Defaults()
			c.Minibatch, c.Accumulate, c.Epochs, c.VTrace, c.AdaptiveKL = 9, 2, 3, true, 0.02
			return learned(t, n, c, policytest.Options{Steps: 12, Envs: 3, Blocks: 2, Masked: true, InvalidEvery: 5, Seed: 23})
		},
		"warmed": func(t *testing.T) component.State {
			n := net
			n.ShareTrunk, n.NormalizeObs, n.Core = true, true, &policy.Core{Kind: policy.CoreGRU, Size: 6}
			c := ppo.Defaults()
			c.Minibatch, c.BurnInRows, c.Epochs, c.NormalizeReturns = 13, 1, 3, true
			c.VTrace, c.VTraceRecompute = true, ppo.RecomputeEpoch
			return learned(t, n, c, policytest.Options{Steps: 12, Envs: 3, Blocks: 2, InvalidEvery: 5, Seed: 24})
		},
		"warmed_lstm": func(t *testing.T) component.State {
			n := net
			n.Core = &policy.Core{Kind: policy.CoreLSTM, Size: 5}
			c := ppo.Defaults()
			c.Minibatch, c.Accumulate, c.BurnInRows, c.Epochs = 12, 2, 3, 3
			return learnedInTurns(t, n, c, policytest.Options{Steps: 12, Envs: 4, Blocks: 2, Masked: true, SoA: true, InvalidEvery: 7, Seed: 25})
		},
		"several_gru": func(t *testing.T) component.State {
			n := net
			n.ShareTrunk, n.NormalizeObs, n.Core = true, true, &policy.Core{Kind: policy.CoreGRU, Size: 6}
			n.Heads = actions(policy.NetworkStd, 0, policy.Dist{MultiCategorical: &head.MultiCategorical{Counts: []int{2, 3}}}, box(2, head.Tanh))
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace = 13, 3, true
			return learned(t, n, c, policytest.Options{Steps: 12, Envs: 3, Blocks: 2, Masked: true, SoA: true, InvalidEvery: 5, Seed: 17})
		},
	}
}

// learned makes a dataset and learns from it twice with the reference arithmetic.
func learned(t *testing.T, mlp policy.MLP, c ppo.Config, o policytest.Options) component.State {
	t.Helper()
	return learn(t, &mlp, c, dataset(t, &mlp, &o), o.Network)
}

// learnedInTurns is learned where the environments of a block are agents that act in every second row.
func learnedInTurns(t *testing.T, mlp policy.MLP, c ppo.Config, o policytest.Options) component.State {
	t.Helper()
	d := dataset(t, &mlp, &o)
	for i, b := range d.Blocks {
		d.Blocks[i] = policytest.InTurns(t, b)
	}
	o.Network.Chunk *= 2 // with as many rows where an agent acts
	return learn(t, &mlp, c, d, o.Network)
}

// dataset makes one for a network, which it completes.
func dataset(t *testing.T, mlp *policy.MLP, o *policytest.Options) *policy.Dataset {
	t.Helper()
	o.Network = mlp.Network()
	if mlp.Core != nil {
		o.Network.Chunk = chunk
	}
	d := policytest.NewDataset(t, *o)
	act(d, o)
	return d
}

// learn learns twice from a dataset.
func learn(t *testing.T, mlp *policy.MLP, c ppo.Config, d *policy.Dataset, n policy.Network) component.State {
	t.Helper()
	told := *mlp
	told.PolicyGain = 0 // it is of the parameters below alone: no key of a table says it
	nodes := told.Network()
	nodes.Chunk = n.Chunk
	r := reference{Table: tableOf(mlp, n.Chunk), Nodes: nodes, Config: c, Rates: ppo.Rates{LearningRate: 3e-3, Clip: 0.2, Entropy: 0.01}, Seed: d.Seed,
		Index: d.Index, Schema: d.Blocks[0].Schema.Document(), Updates: 2}
	r.Normalizer = append(append(r.Normalizer, d.ObsMean...), d.ObsScale...)
	params := policy.Init(&n, 3)
	state := component.State{Tensors: map[string]component.Tensor{}, Blobs: map[string][]byte{}}
	state.Tensors["before"] = component.Tensor{Shape: []int{len(params)}, Data: params}
	learner := policytest.NewReference(n, params, c)
	for range r.Updates {
		err := learner.Warm(d, c.BurnInRows)
		if err != nil {
			t.Fatal(err)
		}
		if r.Stats, err = learner.Update(d, r.Rates); err != nil {
			t.Fatal(err)
		}
		d.Index++
	}
	after := make([]float32, len(params))
	for i, p := range learner.Graph.Params {
		after[i] = float32(p)
	}
	state.Tensors["after"] = component.Tensor{Shape: []int{len(after)}, Data: after}
	for i, b := range d.Blocks {
		state.Blobs["block"+string(rune('0'+i))] = b.Mem
	}
	r.LearningRate = learner.LearningRate()
	state.Meta = r
	return state
}

// act fills in a policy's columns, without the arithmetic of any.
func act(d *policy.Dataset, o *policytest.Options) {
	r := rand.New(rand.NewPCG(o.Seed, 77))
	for _, b := range d.Blocks {
		for row := range b.Float32(trajectory.LogProb) {
			logProb := 0.3 * r.NormFloat64()
			for k := range o.Network.Policy {
				logProb += draw(b, &o.Network.Policy[k], k, row, r)
			}
			b.Float32(trajectory.LogProb)[row], b.Float32(trajectory.Bootstrap)[row] = float32(logProb), float32(r.NormFloat64())
		}
		for i := range b.Float32(trajectory.Value) {
			b.Float32(trajectory.Value)[i] = float32(r.NormFloat64())
		}
		if o.Network.Chunk > 0 {
			remember(b, r)
		}
	}
}

// draw fills in a policy's draws for an action of a row: a legal choice of each element, or numbers of a normal distribution
// of variance 1. It returns the log-probability under parameters that are all zero.
func draw(b trajectory.Trajectory, d *policy.Dist, index, row int, r *rand.Rand) float64 {
	step, e := row/b.Schema.Rows(), row%b.Schema.Rows()
	of, err := d.Of()
	if err != nil {
		panic(err)
	}
	m, drawn, mask := b.Row(trajectory.Action.At(index), step), make([]float64, of.Size()), maskOf(b, index, step, e)
	if of.Continuous() {
		m = b.Row(trajectory.RawAction.At(index), step)
	}
	at := func(i int) int { return (e*m.StrideRow + i*m.StrideElem) / 4 }
	first := 0
	for i := range drawn {
		if of.Continuous() {
			drawn[i] = r.NormFloat64()
			m.Float32()[at(i)] = float32(drawn[i])
			continue
		}
		n := d.Counts()[i]
		choice := r.IntN(n)
		for mask != nil && mask[first+choice] == 0 {
			choice = (choice + 1) % n
		}
		first += n
		drawn[i], m.Int32()[at(i)] = float64(choice), d.Start+int32(choice)
	}
	logProb, _ := of.LogProb(make([]float64, of.Elems()), mask, drawn)
	return logProb
}

// maskOf returns the mask of an action of a row, nil if it has none.
func maskOf(b trajectory.Trajectory, index, step, e int) (mask []byte) {
	l := b.Schema.MaskOf(index)
	if l == nil {
		return nil
	}
	for m, i := b.Row(l.Column, step), 0; i < l.Elems; i++ {
		mask = append(mask, m.Data[e*m.StrideRow+i*m.StrideElem])
	}
	return mask
}

// remember fills in a policy's states where chunks begin.
func remember(b trajectory.Trajectory, r *rand.Rand) {
	for t := 0; t < b.Schema.Shape.Steps; t += chunk {
		state := b.Row(trajectory.CoreState, b.Schema.StateRow(t)).Float32()
		for i := range state {
			state[i] = float32(r.NormFloat64() / 2)
		}
	}
}

// TestReference_FilesAreWhatTheReferenceComputes keeps testdata up to date.
func TestReference_FilesAreWhatTheReferenceComputes(t *testing.T) {
	for name, make := range references() {
		path := filepath.Join("testdata", name+".state")
		want := make(t)
		if *update {
			b, err := component.EncodeState(want)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := component.DecodeState(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, tensor := range []string{"before", "after"} {
			if worst := difference(got.Tensors[tensor].Data, want.Tensors[tensor].Data); worst > 1e-6 {
				t.Errorf("%s: %s differs by %g: go test -update", path, tensor, worst)
			}
		}
		for blob := range want.Blobs {
			if string(got.Blobs[blob]) != string(want.Blobs[blob]) {
				t.Errorf("%s: %s differs: go test -update", path, blob)
			}
		}
	}
}

func difference(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	worst := 0.0
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i])-float64(b[i])))
	}
	return worst
}

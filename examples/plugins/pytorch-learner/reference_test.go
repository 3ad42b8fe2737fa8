package pytorchlearner

import (
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

// reference is what one file tells besides its tensors before and after, the blobs block0, block1, ….
type reference struct {
	Network    policy.MLP     `json:"network"`
	Box        *box           `json:"box"`            // of the action, nil for one of Network.Actions values
	Core       *policy.Core   `json:"core,omitempty"` // nil for none
	Nodes      policy.Network `json:"nodes"`
	Config     ppo.Config     `json:"config"`
	Rates      ppo.Rates      `json:"rates"`
	Seed       uint64         `json:"seed"`
	Index      uint64         `json:"index"`
	Normalizer []float32      `json:"normalizer"` // means, then scales
	Schema     *native.Schema `json:"schema"`
	Updates    int            `json:"updates"`
	Stats      ppo.Stats      `json:"stats"` // of the last one
	// LearningRate is that of the last step, where it follows the divergence.
	LearningRate float32 `json:"learning_rate"`
}

// chunk is how many rows networks with a core are learned from together.
const chunk = 4

// box is a Box action of some elements and how it is drawn.
type box struct {
	N      int           `json:"n"`
	Squash head.Squash   `json:"squash"`
	LogStd policy.LogStd `json:"log_std"`
	Init   float64       `json:"log_std_init"`
}

// of returns a network with the action.
func (b *box) of(n policy.MLP) policy.MLP {
	bounds := policy.Bounds{Rescale: true}
	for range b.N {
		bounds.Low, bounds.High = append(bounds.Low, -2), append(bounds.High, 2)
	}
	n.Policy = []policy.Dist{{Action: "action", Bounds: &bounds, Gaussian: &head.Gaussian{N: b.N, Squash: b.Squash}}}
	n.Actions, n.LogStd, n.LogStdInit = 0, b.LogStd, b.Init
	return n
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
			c.Minibatch, c.Epochs, c.VTrace, c.RhoBar, c.CBar, c.Recompute = 13, 3, true, 1.2, 0.9, ppo.RecomputeEpoch
			c.ClipGradApart = true
			return learned(t, net, c, policytest.Options{Steps: 10, Envs: 2, Blocks: 2, Seed: 5})
		},
		"returns": func(t *testing.T) component.State {
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.NormalizeReturns, c.KLCoef = 16, 3, true, 0.3
			return learned(t, net, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Seed: 6})
		},
		"box": func(t *testing.T) component.State {
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.AdaptiveKL, c.ClipGradApart = 16, 3, 0.02, true
			return learnedBox(t, net, &box{N: 2, LogStd: policy.FreeStd, Init: -0.3}, c,
				policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, Seed: 7})
		},
		"squashed": func(t *testing.T) component.State {
			n := net
			n.ShareTrunk, n.NormalizeObs = true, true
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace = 13, 3, true
			return learnedBox(t, n, &box{N: 3, LogStd: policy.StateStd, Squash: head.Tanh}, c,
				policytest.Options{Steps: 8, Envs: 3, Blocks: 1, SoA: true, Seed: 8})
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
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.VTrace, c.Recompute, c.ClipGradApart = 16, 3, true, ppo.RecomputeEpoch, true
			return learnedBox(t, n, &box{N: 2, LogStd: policy.FreeStd, Init: -0.2}, c,
				policytest.Options{Steps: 8, Envs: 3, Blocks: 2, InvalidEvery: 7, SoA: true, Seed: 12})
		},
		"fixed": func(t *testing.T) component.State {
			c := ppo.Defaults()
			c.Minibatch, c.Epochs, c.AdaptiveKL = 16, 3, 1e-4
			return learnedBox(t, net, &box{N: 1, LogStd: policy.FixedStd, Init: -0.5}, c, policytest.Options{Steps: 8, Envs: 3, Blocks: 2, Seed: 10})
		},
	}
}

// learned makes a dataset and learns from it twice with the reference arithmetic.
func learned(t *testing.T, mlp policy.MLP, c ppo.Config, o policytest.Options) component.State {
	t.Helper()
	return learnedBox(t, mlp, nil, c, o)
}

// learnedBox is learned for a Box action.
func learnedBox(t *testing.T, mlp policy.MLP, b *box, c ppo.Config, o policytest.Options) component.State {
	t.Helper()
	if b != nil {
		mlp = b.of(mlp)
	}
	o.Network = mlp.Network()
	if mlp.Core != nil {
		o.Network.Chunk = chunk
	}
	d := policytest.NewDataset(t, o)
	act(d, &o)
	n := o.Network
	r := reference{Network: mlp, Box: b, Core: mlp.Core, Nodes: n, Config: c, Rates: ppo.Rates{LearningRate: 3e-3, Clip: 0.2, Entropy: 0.01}, Seed: d.Seed,
		Index: d.Index, Schema: trajectory.EncodeSchema(d.Blocks[0].Schema), Updates: 2}
	r.Normalizer = append(append(r.Normalizer, d.ObsMean...), d.ObsScale...)
	params := policy.Init(&n, 3)
	state := component.State{Tensors: map[string]component.Tensor{}, Blobs: map[string][]byte{}}
	state.Tensors["before"] = component.Tensor{Shape: []int{len(params)}, Data: params}
	learner := policytest.NewReference(n, params, c)
	for range r.Updates {
		var err error
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

// act fills in what a policy would have written, without the arithmetic of any.
func act(d *policy.Dataset, o *policytest.Options) {
	r := rand.New(rand.NewPCG(o.Seed, 77))
	for _, b := range d.Blocks {
		if dist := o.Network.Dists()[0]; dist.Continuous() {
			draw(b, dist, r)
		} else {
			choose(b, o, r)
		}
		for i := range b.Float32(trajectory.Value) {
			b.Float32(trajectory.Value)[i] = float32(r.NormFloat64())
		}
		if o.Network.Chunk > 0 {
			remember(b, r)
		}
	}
}

// choose fills in what a policy of a Discrete action would have chosen.
func choose(b trajectory.Trajectory, o *policytest.Options, r *rand.Rand) {
	mask, masked := b.Schema.Layout(trajectory.Mask)
	action := b.Int32(trajectory.Action)
	for i := range action {
		action[i] = int32(r.IntN(o.Network.Actions()))
		at := i/o.Envs*mask.StrideT + i%o.Envs*mask.StrideEnv
		for masked && b.Bytes(trajectory.Mask)[at+int(action[i])*mask.StrideElem] == 0 {
			action[i] = (action[i] + 1) % int32(o.Network.Actions())
		}
		b.Float32(trajectory.LogProb)[i] = float32(-1.1 + 0.3*r.NormFloat64())
		b.Float32(trajectory.Bootstrap)[i] = float32(r.NormFloat64())
	}
}

// remember fills in what a policy would have kept where chunks begin.
func remember(b trajectory.Trajectory, r *rand.Rand) {
	for t := 0; t < b.Schema.Shape.Steps; t += chunk {
		state := b.Row(trajectory.CoreState, b.Schema.StateRow(t)).Float32()
		for i := range state {
			state[i] = float32(r.NormFloat64() / 2)
		}
	}
}

// draw fills in what a policy of a Box would have drawn: numbers of a normal distribution of variance 1.
func draw(b trajectory.Trajectory, dist head.Dist, r *rand.Rand) {
	raw, action := b.Float32(trajectory.RawAction), make([]float64, dist.Size())
	for i := range b.Float32(trajectory.LogProb) {
		for k := range action {
			action[k] = r.NormFloat64()
			raw[i*len(action)+k] = float32(action[k])
		}
		logProb, _ := dist.LogProb(make([]float64, dist.Elems()), nil, action)
		b.Float32(trajectory.LogProb)[i] = float32(logProb + 0.3*r.NormFloat64())
		b.Float32(trajectory.Bootstrap)[i] = float32(r.NormFloat64())
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

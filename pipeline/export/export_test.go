package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
)

// alone makes an instance of a module.
func alone(module []byte) (Machine, error) { return engine.NewAlone(module) }

// networks are some of each part that a network can have.
func networks() map[string]policy.Network {
	box := func(n int, squash head.Squash, rescale bool) policy.Dist {
		d := policy.Dist{Action: "steer", Gaussian: &head.Gaussian{N: n, Squash: squash}, Bounds: &policy.Bounds{Rescale: rescale}}
		for i := range n {
			d.Bounds.Low, d.Bounds.High = append(d.Bounds.Low, -1-100*float32(i)), append(d.Bounds.High, 0.5)
		}
		return d
	}
	all := map[string]policy.MLP{
		"fast":       {Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: "tanh"},
		"gelu":       {Obs: 4, Actions: 2, Hidden: []int{24}, Activation: "gelu"},
		"silu":       {Obs: 4, Actions: 2, Hidden: []int{24}, Activation: "silu"},
		"normalised": {Obs: 6, Actions: 3, Hidden: []int{32}, Activation: "relu", NormalizeObs: true},
		"shared":     {Obs: 3, Actions: 5, Hidden: []int{16, 48}, Activation: "elu", ShareTrunk: true, NormalizeObs: true},
		"box":        {Obs: 3, Hidden: []int{16}, Activation: "tanh", Heads: policy.Heads{LogStdInit: -0.5, Policy: []policy.Dist{box(3, head.Free, false)}}},
		"rescaled":   {Obs: 3, Hidden: []int{16}, Activation: "tanh", Heads: policy.Heads{LogStd: policy.FixedStd, LogStdInit: -1, Policy: []policy.Dist{box(1, head.Free, true)}}},
		"bounded": {Obs: 3, Hidden: []int{16}, Activation: "tanh", Heads: policy.Heads{LogStd: policy.NetworkStd, Policy: []policy.Dist{{Action: "steer",
			Gaussian: &head.Gaussian{N: 2, LogStd: head.Range{Min: -0.1, Max: 0.2}}, Bounds: &policy.Bounds{Low: []float32{-1, -1}, High: []float32{1, 1}}}}}},
		"squashed": {Obs: 3, Hidden: []int{16}, Activation: "tanh", Heads: policy.Heads{LogStd: policy.NetworkStd, Policy: []policy.Dist{box(2, head.Tanh, false)}}},
		"joint": {Obs: 5, Hidden: []int{24}, Activation: "tanh", NormalizeObs: true, Heads: policy.Heads{Policy: []policy.Dist{
			{Action: "gear", Start: -2, MultiCategorical: &head.MultiCategorical{Counts: []int{3, 1, 4}}}, box(2, head.Free, false),
			{Action: "lights", Bernoulli: &head.Bernoulli{N: 3}}, {Action: "lane", Start: 7, Categorical: &head.Categorical{N: 3}}}}},
	}
	for name, kind := range map[string]policy.CoreKind{"gru": policy.CoreGRU, "lstm": policy.CoreLSTM} {
		all[name] = policy.MLP{Obs: 3, Actions: 4, Hidden: []int{16}, Activation: "tanh", NormalizeObs: true, Core: &policy.Core{Kind: kind, Size: 12}}
	}
	n := map[string]policy.Network{"layers": layers(), "inputs": inputs()}
	for name, m := range all {
		m.PolicyGain = 1 // so that actions differ
		n[name] = chunked(m.Network())
	}
	return n
}

// chunked sets the chunk of a network with cores.
func chunked(n policy.Network) policy.Network {
	if n.State() > 0 {
		n.Chunk = 1
	}
	return n
}

// layers has every operation of a node except log_std's and the ones with a state.
func layers() policy.Network {
	conv := func(out, kernel, stride, pad int) *layer.Conv2D {
		return &layer.Conv2D{Window: layer.Window{Kernel: kernel, Stride: stride, Pad: pad}, Out: out, Gain: 1}
	}
	nodes := []policy.Node{
		{Name: "conv.0", In: []string{"obs"}, Conv2D: conv(5, 3, 2, 1)},
		{Name: "elu", In: []string{"conv.0"}, Activation: &layer.Activation{Func: layer.ELU}},
		{Name: "conv.1", In: []string{"elu"}, Conv2D: conv(5, 3, 1, 1)},
		{Name: "sum", In: []string{"conv.1", "elu", "elu"}, Add: &layer.Add{}},
		{Name: "both", In: []string{"sum", "elu"}, Concat: &layer.Concat{}},
		{Name: "norm", In: []string{"both"}, LayerNorm: &layer.LayerNorm{}},
		{Name: "pool", In: []string{"norm"}, MaxPool: &layer.MaxPool{Window: layer.Window{Kernel: 3, Stride: 2, Pad: 1}}},
		{Name: "flat", In: []string{"pool"}, Flatten: &layer.Flatten{}},
		{Name: "dense", In: []string{"pool"}, Dense: &layer.Dense{Out: 24, Gain: 1}},
		{Name: "all", In: []string{"flat", "dense"}, Concat: &layer.Concat{}},
		{Name: "last", In: []string{"all"}, LayerNorm: &layer.LayerNorm{}},
	}
	return policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{9, 7, 3}, Norm: policy.Running}}, Nodes: nodes,
		Heads: policy.Heads{Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 4}}}}}.Network()
}

// inputs has an observation of every kind.
func inputs() policy.Network {
	in := []policy.Input{
		{Path: "camera", Shape: []int{5, 4, 2}, DType: "u8", Norm: policy.Scaled, Scale: 1. / 255, Stack: 3},
		{Path: "planes", Shape: []int{2, 5, 4}, DType: "u8", Norm: policy.Scaled, Scale: 1. / 128, CHW: true, Stack: 2},
		{Path: "map", Shape: []int{3, 5, 4}, Norm: policy.Running, CHW: true},
		{Path: "speed", Shape: []int{3}, Norm: policy.Running, Stack: 2},
		{Path: "inventory/gold", Shape: []int{2}, DType: "i32", Norm: policy.OneHot, Choices: []int{3, 5}, Start: -1, Stack: 2},
		{Path: "last_action", Shape: []int{1}, DType: "i32", From: policy.LastAction, Norm: policy.OneHot, Choices: []int{4}},
		{Path: "last_reward", Shape: []int{1}, From: policy.LastReward, Learned: true, Norm: policy.Running},
	}
	nodes := []policy.Node{
		{Name: "pictures", In: []string{"camera", "planes", "map"}, Concat: &layer.Concat{}},
		{Name: "conv", In: []string{"pictures"}, Conv2D: &layer.Conv2D{Window: layer.Window{Kernel: 2, Stride: 1}, Out: 4, Gain: 1}},
		{Name: "seen", In: []string{"conv"}, Flatten: &layer.Flatten{}},
		{Name: "all", In: []string{"seen", "speed", "inventory/gold", "last_action", "last_reward"}, Concat: &layer.Concat{}},
		{Name: "dense", In: []string{"all"}, Dense: &layer.Dense{Out: 16, Gain: 1}},
	}
	return policy.Body{Inputs: in, Nodes: nodes,
		Heads: policy.Heads{PolicyGain: 1, Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 4}}}}}.Network()
}

// sample makes a policy with random weights and the host's results for random observations.
func sample(t *testing.T, network policy.Network, masked bool, rows int) (*Policy, *Samples) {
	t.Helper()
	d := policytest.NewDataset(t, policytest.Options{Network: network, Steps: 1, Envs: rows, Blocks: 1, Masked: masked, Seed: 3})
	p := &Policy{Network: network, About: map[string]string{"run": "cartpole/0007"}}
	p.Weights = policy.Weights{Params: policy.Init(&network, 5), ObsMean: d.ObsMean, ObsScale: d.ObsScale}
	q := policytest.Requests(&network, d, d.Blocks[0], 0, rows)
	q[0].Greedy = true
	for k := range network.Policy {
		p.Masked = append(p.Masked, q[0].ActionMask(k).Rows > 0)
	}
	actor, err := policy.NewActor(cpu.New(), &network, rows)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(actor.Load(p.Weights), actor.Act(q), actor.Close()); err != nil {
		t.Fatal(err)
	}
	s := NewSamples(&network, d.ObsMean)
	s.Add(&q[0])
	return p, s
}

// Every operation and distribution that there is has been compared.
func TestNetworksHaveEveryPart(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, n := range networks() {
		b, err := json.Marshal(&n)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	for _, f := range layer.Funcs() {
		if !bytes.Contains(reader, []byte("    "+strconv.Quote(string(f))+": ")) {
			t.Errorf("ACTIVATIONS in rlhost_policy.py has no %s", f)
		}
		if !strings.Contains(text.String(), `"func":`+strconv.Quote(string(f))) {
			t.Errorf("no network here has %s", f)
		}
	}
	for _, name := range append(policy.Layers(), "categorical", "multi_categorical", "bernoulli", "gaussian") {
		if !strings.Contains(text.String(), strconv.Quote(name)+":") {
			t.Errorf("no network here has %s", name)
		}
	}
}

func TestCompare_EveryFormatComputesTheHostsActions(t *testing.T) {
	t.Parallel()
	for name, n := range networks() {
		for _, masked := range []bool{false, true} {
			p, s := sample(t, n, masked, 5_000)
			for _, f := range Formats() {
				file, err := Encode(f, p)
				if err != nil {
					t.Fatal(err)
				}
				largest, err := Compare(f, file, s, alone)
				t.Logf("%s, %s, masks %t: %d bytes, largest difference %.1e", f, name, masked, len(file), largest)
				if err != nil {
					t.Errorf("%s, %s: %v", f, name, err)
				}
				again, err := Encode(f, p)
				if err != nil || !bytes.Equal(file, again) {
					t.Errorf("%s, %s: the same policy gives another file (%v)", f, name, err)
				}
			}
		}
	}
}

// privileged is a network whose value reads an input, by statistics, that the policy does not.
func privileged() policy.Network {
	return policy.MLP{Hidden: []int{16}, Activation: "tanh", CriticOnly: []bool{true, false}, Heads: policy.Heads{PolicyGain: 1, Policy: []policy.Dist{
		{Action: "action", Categorical: &head.Categorical{N: 4}}}}, Inputs: []policy.Input{
		{Path: "hidden", Shape: []int{3}, Norm: policy.Running}, {Path: "seen", Shape: []int{2}, Norm: policy.Running}}}.Network()
}

// Files that act do not need inputs of the value alone: a file of ONNX has neither these nor the value, the others have both.
func TestEncode_ActionsNeedNoInputsOfTheValue(t *testing.T) {
	t.Parallel()
	p, s := sample(t, privileged(), true, 500)
	for _, f := range Formats() {
		file, err := Encode(f, p)
		if err != nil {
			t.Fatal(err)
		}
		if largest, err := Compare(f, file, s, alone); err != nil {
			t.Errorf("%s: %v (%v)", f, err, largest)
		}
		if has := bytes.Contains(file, []byte("critic.head")); f == ONNX && has || f == Safetensors && !has {
			t.Errorf("%s has the critic: %t", f, has)
		}
	}
	file, err := Encode(ONNX, p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := readONNX(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := m.inputs["hidden"]; there || len(m.inputs) != 2 {
		t.Errorf("the file asks for %v, want seen and mask", m.inputs)
	}
}

// A module without values is smaller, acts alike, and says which inputs an observation has.
func TestEncode_AModuleWithoutValuesActsAlike(t *testing.T) {
	t.Parallel()
	for name, inputs := range map[string]string{"fast": `"inputs":["obs"],"valueless":true`, "privileged": `"inputs":["seen"],"valueless":true`} {
		n, listed := networks()[name]
		if !listed {
			n = privileged()
		}
		p, s := sample(t, n, false, 500)
		whole, err := Encode(Wasm, p)
		if err != nil {
			t.Fatal(err)
		}
		p.Valueless = true
		file, err := Encode(Wasm, p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compare(Wasm, file, s, alone); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Contains(file, []byte(inputs)) || name == "fast" && len(file) > len(whole)-16_000 {
			t.Errorf("%s: %d bytes of %d, or the description has no %s", name, len(file), len(whole), inputs)
		}
	}
}

// TestCompare_FindsWhatDiffers changes each weight's sign in turn, and each byte of a file.
func TestCompare_FindsWhatDiffers(t *testing.T) {
	t.Parallel()
	box := policy.Dist{Action: "steer", Gaussian: &head.Gaussian{N: 1}, Bounds: &policy.Bounds{Low: []float32{-1}, High: []float32{1}}}
	for _, m := range []policy.MLP{
		{Obs: 2, Actions: 2, Hidden: []int{3}, Activation: "tanh", NormalizeObs: true, Heads: policy.Heads{PolicyGain: 1}},
		{Obs: 2, Hidden: []int{3}, Activation: "tanh", Heads: policy.Heads{LogStdInit: -0.5, PolicyGain: 1, Policy: []policy.Dist{box}}},
		{Obs: 1, Actions: 2, Hidden: []int{2}, Activation: "tanh", Core: &policy.Core{Kind: policy.CoreGRU, Size: 2}, ShareTrunk: true},
		{Obs: 1, Actions: 2, Hidden: []int{1}, Activation: "tanh", Core: &policy.Core{Kind: policy.CoreLSTM, Size: 1}},
	} {
		p, s := sample(t, chunked(m.Network()), false, 200)
		for _, f := range Formats() {
			for i, w := range p.Weights.Params {
				if w == 0 {
					continue
				}
				p.Weights.Params[i] = -w
				file, err := Encode(f, p)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Compare(f, file, s, alone); !errors.Is(err, ErrDiffers) {
					t.Errorf("%s: parameter %d has another sign: %v", f, i, err)
				}
				p.Weights.Params[i] = w
			}
			file, err := Encode(f, p)
			if err != nil {
				t.Fatal(err)
			}
			for i := range file {
				damaged := bytes.Clone(file)
				damaged[i] ^= 0x55
				if f == Wasm { // damaged code may run for ever
					_, _ = describedBy(damaged)
					continue
				}
				_, _ = Compare(f, damaged, s, alone) // whatever it says, it returns
			}
		}
	}
}

// peerText is samples of a network for a program in Python.
func peerText(t *testing.T, n *policy.Network, s *Samples) []byte {
	t.Helper()
	var names []string
	for _, p := range n.Params() {
		names = append(names, p.Name)
	}
	given := map[string]any{"obs": s.Obs, "inputs": n.Inputs, "log_prob": s.LogProb, "value": s.Value,
		"state": s.State, "next_state": s.StateOut, "names": names}
	var actions []any
	for k, a := range s.Actions {
		actions = append(actions, map[string]any{"mask": numbers(a.Mask), "counts": n.Policy[k].Counts(), "chosen": a.Chosen, "given": a.Given,
			"start": n.Policy[k].Start, "squash": n.Policy[k].Gaussian != nil && n.Policy[k].Gaussian.Squash != head.Free})
	}
	given["actions"] = actions
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each of the host's layers, cores, inputs and distributions computes the same in PyTorch, by the same names, and has gradients there.
func TestPeers_TorchComputesWhatTheHostDoes(t *testing.T) {
	t.Parallel()
	python := os.Getenv("RLHOST_TORCH")
	if python == "" {
		t.Skip("RLHOST_TORCH is not set: make test-peers")
	}
	all := networks()
	all["privileged"] = privileged()
	for name, n := range all {
		for _, masked := range []bool{false, true} {
			if !masked && name != "fast" && name != "joint" {
				continue // a process each: seconds
			}
			t.Run(fmt.Sprintf("%s masks=%t", name, masked), func(t *testing.T) {
				p, s := sample(t, n, masked, 2_000)
				file, err := Encode(NumPy, p)
				if err != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "policy.npz"), file, 0o644); err != nil {
					t.Fatal(err)
				}
				c := exec.Command(python, "testdata/torch_peer.py", dir)
				c.Stdin = bytes.NewReader(peerText(t, &n, s))
				out, err := c.CombinedOutput()
				if t.Logf("%s", out); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestPeers_NumPyAndONNXRuntimeComputeWhatTheHostDoes plays the files to the programs that they are for. RLHOST_PEERS
// names a Python that has NumPy and onnxruntime.
func TestPeers_NumPyAndONNXRuntimeComputeWhatTheHostDoes(t *testing.T) {
	t.Parallel()
	python := os.Getenv("RLHOST_PEERS")
	if python == "" {
		t.Skip("RLHOST_PEERS is not set: make test-peers")
	}
	all := networks()
	all["privileged"] = privileged()
	for name, n := range all {
		for _, masked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s masks=%t", name, masked), func(t *testing.T) {
				p, s := sample(t, n, masked, 5_000)
				dir := t.TempDir()
				for _, f := range []Format{NumPy, ONNX} {
					file, err := Encode(f, p)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, "policy"+f.Suffix()), file, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				text := peerText(t, &n, s)
				c := exec.Command(python, "testdata/peer.py", dir)
				c.Stdin = bytes.NewReader(text)
				if out, err := c.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				} else {
					t.Logf("%s", out)
				}
			})
		}
	}
}

func numbers(b []byte) []int {
	n := make([]int, len(b))
	for i, v := range b {
		n[i] = int(v)
	}
	return n
}

func TestS32AnActivationThatIsNotKnownIsNotWritten(t *testing.T) {
	t.Parallel()
	l := onnxLayer{onnxGraph: &onnxGraph{}, of: &policy.Node{Name: "bent", Activation: &layer.Activation{Func: "softsign"}}, in: []string{"x"}, out: "y"}
	if err := l.write(); !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), "softsign") {
		t.Errorf("write = %v, want ErrUnsupported that names softsign", err)
	}
}

// BenchmarkModule acts on one observation of a network of 4-64-64, as a module in wazero.
func BenchmarkModule(b *testing.B) {
	m := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: "tanh"}
	n := m.Network()
	file, err := Encode(Wasm, &Policy{Network: n, Weights: policy.Weights{Params: policy.Init(&n, 5)}})
	if err != nil {
		b.Fatal(err)
	}
	module, err := alone(file)
	if err != nil {
		b.Fatal(err)
	}
	defer module.Close()
	b.ReportMetric(float64(len(file)), "bytes")
	for b.Loop() {
		if _, err := module.Call("rl_policy_act"); err != nil {
			b.Fatal(err)
		}
	}
}

// A refusal names the plugin that alone computes the network, or the node and the activation that a module has no words for.
func TestEncode_AModuleNamesWhatItCannotHold(t *testing.T) {
	t.Parallel()
	m := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: "tanh"}
	n := m.Network()
	of := policy.External{Program: "mine", Inputs: n.Inputs, Policy: n.Policy}.Network()
	_, err := Encode(Wasm, &Policy{Network: of, Weights: policy.Weights{Params: policy.Init(&of, 1)}})
	if !errors.Is(err, ErrUndescribed) || !strings.Contains(err.Error(), `plugin "mine"`) {
		t.Errorf("Encode = %v, want ErrUndescribed that names the plugin", err)
	}
	x := program{shapes: map[string][]int{"x": {3}, "bent": {3}}, places: map[string]uint32{"x": 0}}
	bent := policy.Node{Name: "bent", In: []string{"x"}}
	err = x.node(&bent, &layer.Activation{Func: "softsign"}, nil)
	if !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), `node "bent": activation "softsign"`) {
		t.Errorf("node = %v, want ErrUnsupported that names the node and softsign", err)
	}
	if err = x.node(&bent, &layer.External{}, nil); !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), `node "bent"`) {
		t.Errorf("node = %v, want ErrUnsupported that names the node", err)
	}
}

package touch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
)

// computes holds both engines to the reference with the network that a toy has added to policytest's suite.
func (p *toys) computes(t *testing.T, network string) {
	t.Helper()
	c := exec.Command("go", "test", "-vet=off", "-v", "-overlay", filepath.Join(p.dir, "overlay.json"),
		"-run", "TestBackend/(generic|"+network+")/("+network+"|reference)", "./gpu/cpu", "./gpu/gorgonia")
	c.Dir = filepath.Join("..", "..")
	out, err := c.CombinedOutput()
	for _, test := range []string{"TestBackendWithEveryKernelSet/generic/" + network, "TestBackend/" + network} {
		for _, part := range []string{"forward", "gradient", "updates", "V-trace"} {
			if !strings.Contains(string(out), "--- PASS: "+test+"/"+part) {
				t.Errorf("%s/%s did not pass (%v)", test, part, err)
			}
		}
	}
	if t.Failed() || err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// passes runs a test of a package with all toys.
func (p *toys) passes(t *testing.T, from, test string) {
	t.Helper()
	c := exec.Command("go", "test", "-vet=off", "-v", "-overlay", filepath.Join(p.dir, "overlay.json"), "-run", "^"+test+"$", from)
	c.Dir = p.root
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+test) {
		t.Errorf("%s: %v\n%s", from, err, out)
	}
}

// toyNetwork is a network of the suite, in Go, with more fields of its second node and of its head.
func toyNetwork(function, node, head string) string {
	return `package policytest

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

func ` + function + `() policy.Network {
	return policy.Network{Format: policy.Format,
		Inputs: []policy.Input{{Path: "obs", Shape: []int{5}}},
		Nodes: []policy.Node{
			{Name: "trunk", In: []string{"obs"}, Dense: &layer.Dense{Out: 20, Gain: 1}},
			{Name: "toy", In: []string{"trunk"}, ` + node + `},
			{Name: "actor.head", In: []string{"toy"}, Dense: &layer.Dense{Out: 3, Gain: 1}},
			{Name: "critic.head", In: []string{"toy"}, Dense: &layer.Dense{Out: 1, Gain: 1}}},
		Policy: []policy.Dist{{Action: "action", From: "actor.head", ` + head + `}},
		Values: []policy.ValueHead{{Name: "value", From: "critic.head"}}}
}
`
}

func layerAxis() axis {
	return axis{name: "a layer", doors: 5,
		files: map[string]string{
			"gpu/policy/layer/scale.go": `package layer

import "fmt"

// Scale multiplies each element.
type Scale struct {
	By float64 ` + "`json:\"by\" toml:\"by\"`" + `
}

var _ Op = (*Scale)(nil)

// Shape is that of the input.
func (s *Scale) Shape(in [][]int) ([]int, error) {
	_, err := one(in)
	return in[0], err
}

// Params are none.
func (s *Scale) Params([][]int) []Tensor { return nil }

// Forward is Op's.
func (s *Scale) Forward(p *Pass) {
	for i, x := range p.In[0] {
		p.Out[i] = s.By * x
	}
}

// Backward is Op's.
func (s *Scale) Backward(p *Pass) {
	for i, g := range p.DOut {
		p.DIn[0][i] += s.By * g
	}
}

// String is such as scale(2).
func (s *Scale) String() string { return fmt.Sprintf("scale(%g)", s.By) }
`,
			"gpu/cpu/scale.go": `package cpu

type scaled struct {
	node
	by float32
}

func (o *scaled) forward(p *pass, rows int) {
	in, out := p.input(&o.In[0]), p.output(&o.node)
	for r := range rows {
		for j := range o.Width {
			out.data[r*out.row+j] = o.by * in.data[r*in.row+j*in.col]
		}
	}
}

func (o *scaled) backward(s *shard, rows int) {
	e := &o.In[0]
	if e.From == nil {
		return
	}
	g, below := s.gradient(&o.node), s.below(e, rows)
	for r := range rows {
		for j := range o.Width {
			below.data[r*below.row+j] += o.by * g.data[r*g.row+j]
		}
	}
	s.passed(e, rows)
}
`,
			"gpu/gorgonia/scale.go": `package gorgonia

func scaled(x *Node, by float64) (*Node, error) { return caught(func() *Node { return scale(x, by) }) }
`,
			"gpu/cuda/scale_test.go": `package cuda_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
)

func TestToy_IsNamed(t *testing.T) {
	for name, o := range policytest.Cases {
		if name != "scaled" {
			continue
		}
		if _, err := cuda.New(cuda.Options{}).Compile(&o.Network); err == nil || !strings.Contains(err.Error(), "node toy, scale(-1.5)") {
			t.Error(err)
		}
	}
}
`,
			"gpu/policy/policytest/scale.go": toyNetwork("scaled", "Scale: &layer.Scale{By: -1.5}", "Categorical: &head.Categorical{N: 3}"),
		},
		edits: []edit{
			{"gpu/policy/network.go", "\tActivation *layer.Activation", "\tScale *layer.Scale `json:\"scale,omitempty\" toml:\"scale\"`\n"},
			{"gpu/cpu/table.go", "\tcase *layer.Activation:", "\tcase *layer.Scale:\n\t\treturn &scaled{n, float32(of.By)}\n"},
			{"gpu/gorgonia/table.go", "\tcase *layer.Activation:", "\tcase *layer.Scale:\n\t\treturn scaled(in[0], of.By)\n"},
			{"gpu/policy/policytest/backend.go", "\t\t{name: \"dense nodes", "\t\t{name: \"scaled\", net: scaled()},\n"},
			leftOut("scaled"),
		},
		check: func(t *testing.T, p *toys) {
			p.computes(t, "scaled")
			p.passes(t, "./gpu/cuda", "TestBackend/scaled") // which has no file for it
			p.passes(t, "./gpu/cuda", "TestToy_IsNamed")
			p.write(t, "layer.toml", pipelineWith("", `[policy.main.net]
nodes = [{ name = "trunk", in = ["obs"], dense = { out = 8 } }, { name = "toy", in = ["trunk"], scale = { by = -1.5 } }]
`))
			p.says(t, "evaluation: return", "train", "layer.toml", "--set", "run.name=layer")
			p.says(t, `node "toy": scale(-1.5) in an ONNX file is not supported`, "export", "layer", "--format", "onnx")
		}}
}

func headAxis() axis {
	return axis{name: "a head", doors: 5,
		files: map[string]string{
			"gpu/policy/head/tempered.go": `package head

import "fmt"

// Tempered is categorical over logits divided by a temperature.
type Tempered struct {
	Categorical
	Temperature float64 ` + "`json:\"temperature\"`" + `
}

var _ Dist = (*Tempered)(nil)

// String is such as tempered(2, 0.5).
func (t *Tempered) String() string { return fmt.Sprintf("tempered(%d, %g)", t.N, t.Temperature) }

func (t *Tempered) cooled(logits []float64) []float64 {
	x := make([]float64, len(logits))
	for i := range x {
		x[i] = logits[i] / t.Temperature
	}
	return x
}

// LogProb is Dist's.
func (t *Tempered) LogProb(logits []float64, mask []byte, action []float64) (logProb, entropy float64) {
	return t.Categorical.LogProb(t.cooled(logits), mask, action)
}

// Sample is Dist's.
func (t *Tempered) Sample(logits []float64, mask []byte, u []float32, action []float64) {
	t.Categorical.Sample(t.cooled(logits), mask, u, action)
}

// KL is Dist's.
func (t *Tempered) KL(p, q []float64, mask []byte) float64 {
	return t.Categorical.KL(t.cooled(p), t.cooled(q), mask)
}

// Gradient is Dist's.
func (t *Tempered) Gradient(d, logits []float64, mask []byte, action []float64, dLogProb, dEntropy float64) {
	t.Categorical.Gradient(d, t.cooled(logits), mask, action, dLogProb/t.Temperature, dEntropy/t.Temperature)
}
`,
			"gpu/cpu/tempered.go": `package cpu

import (
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/ppo"
)

type tempered struct {
	*choices
	inverse float32
}

func temperedOf(of *head.Tempered) func(p *pass, action int, firstDraw uint32) part {
	inner := choicesOf([]int{of.N}, false)
	return func(p *pass, action int, firstDraw uint32) part {
		return &tempered{inner(p, action, firstDraw).(*choices), float32(1 / of.Temperature)}
	}
}

func (t *tempered) cool() {
	for i := range t.logits {
		t.logits[i] *= t.inverse
	}
}

func (t *tempered) draw(r *policy.Request, lo, hi int) (illegal int) {
	t.cool()
	return t.choices.draw(r, lo, hi)
}

func (t *tempered) weigh(b *ppo.Actions, ld, lo, rows int, logProb, entropy []float32) {
	if b != nil {
		t.cool()
	}
	t.choices.weigh(b, ld, lo, rows, logProb, entropy)
}

func (t *tempered) descend(slope, ratio []float32, coef, bounds float32, rows int) {
	t.choices.descend(slope, ratio, coef, bounds, rows)
	t.cool() // the gradient
}
`,
			"gpu/gorgonia/tempered.go": `package gorgonia

import "github.com/rlhost/rlhost/gpu/policy/head"

func temperedRow(of *head.Tempered, logits, mask, action *Node) (logProb, entropy *Node) {
	return categoricalRow(of.N, scale(logits, 1/of.Temperature), mask, action)
}
`,
			"gpu/policy/policytest/tempered.go": toyNetwork("tempered", "Activation: &layer.Activation{Func: layer.Tanh}",
				"Tempered: &head.Tempered{Categorical: head.Categorical{N: 3}, Temperature: 2}"),
		},
		edits: []edit{
			{"gpu/policy/network.go", "\tCategorical      *head.Categorical", "\tTempered *head.Tempered `json:\"tempered,omitempty\"`\n"},
			{"gpu/cpu/table.go", "\tcase *head.Categorical:", "\tcase *head.Tempered:\n\t\treturn temperedOf(of)\n"},
			{"gpu/gorgonia/table.go", "\tcase *head.Categorical:", "\tcase *head.Tempered:\n\t\tlogProb, entropy = temperedRow(of, params, mask, action)\n"},
			{"gpu/policy/policytest/backend.go", "\t\t{name: \"dense nodes", "\t\t{name: \"tempered\", net: tempered(), masked: true},\n"},
			leftOut("tempered"),
		},
		check: func(t *testing.T, p *toys) {
			p.computes(t, "tempered")
			p.passes(t, "./gpu/cuda", "TestBackend/tempered")
		}}
}

// leftOut says that one backend leaves out a network of the suite.
func leftOut(network string) edit {
	return edit{"gpu/cuda/backend_test.go", "\t// By their names in policytest.Cases.", "\t" + strconv.Quote(network) + ",\n"}
}

func activationAxis() axis {
	return axis{name: "an activation", doors: 6,
		files: map[string]string{
			"gpu/policy/policytest/bowed.go": toyNetwork("bowed", "Activation: &layer.Activation{Func: layer.Bent}", "Categorical: &head.Categorical{N: 3}"),
		},
		edits: []edit{
			{"gpu/policy/layer/activation.go", "\tReLU Func = \"relu\"", "\tBent Func = \"bent\"\n"},
			{"gpu/policy/layer/activation.go", "\t{ReLU, true", "\t{Bent, true, func(x float64) float64 { return x / (1 + math.Abs(x)) }, func(x float64) float64 { return 1 / ((1 + math.Abs(x)) * (1 + math.Abs(x))) }},\n"},
			// Without assembly: the backend computes it all the same.
			{"gpu/cpu/internal/kern/gemm.go", "\tDTanh // ", "\tBent\n"},
			{"gpu/cpu/internal/kern/gemm.go", "\tepilogues\n", "\tDBent // (1 - |h|)²\n"},
			{"gpu/cpu/internal/kern/gemm.go", "\tcase GELU:", "\tcase Bent:\n\t\tfor j, v := range x {\n\t\t\tx[j] = v / (1 + max(v, -v))\n\t\t}\n"},
			{"gpu/cpu/internal/kern/gemm.go", "\t\tcase e == DGELU:", "\t\tcase e == DBent:\n\t\t\tx[j] *= (1 - max(v, -v)) * (1 - max(v, -v))\n"},
			{"gpu/cpu/table.go", "\tlayer.Tanh: ", "\tlayer.Bent: {kern.Bent, kern.DBent},\n"},
			{"gpu/gorgonia/activation.go", "\tcase layer.GELU:", "\tcase layer.Bent:\n\t\treturn gorgonia.HadamardDiv(x, add(fill(x, 1), gorgonia.Must(gorgonia.Abs(x))))\n"},
			{"gpu/policy/policytest/backend.go", "\t\t{name: \"dense nodes", "\t\t{name: \"bowed\", net: bowed()},\n"},
			leftOut("bowed"),
		},
		check: func(t *testing.T, p *toys) {
			p.computes(t, "bowed")
			p.passes(t, "./gpu/cpu", "TestBackendWithEveryKernelSet/"+cpu.New().Kernels()+"/bowed")
			p.passes(t, "./gpu/cuda", "TestBackend/bowed")
			p.write(t, "activation.toml", pipelineWith("", "[policy.main.net]\nactivation = \"bent\"\n"))
			p.says(t, "evaluation: return", "train", "activation.toml", "--set", "run.name=activation")
			p.says(t, `activation "bent" in an ONNX file is not supported`, "export", "activation", "--format", "onnx")
		}}
}

func encoderAxis() axis {
	return axis{name: "an encoder", doors: 2,
		files: map[string]string{
			"gpu/policy/normed.go": `package policy

import "github.com/rlhost/rlhost/gpu/policy/layer"

// EncodeNormed is a layer norm of the input.
const EncodeNormed EncoderKind = "normed"

func (n *Network) normed(name, in string) string {
	n.Nodes = append(n.Nodes, Node{Name: name, In: []string{in}, LayerNorm: &layer.LayerNorm{}})
	return name
}
`},
		edits: []edit{
			{"gpu/policy/encoder.go", "\tcase EncodeEmbed:", "\tcase EncodeNormed:\n\t\treturn n.normed(name+\".norm\", in)\n"},
			{"plugins/builtin/encoders.go", "string(policy.EncodeMLP), kindOneHot", "string(policy.EncodeNormed), "},
		},
		check: func(t *testing.T, p *toys) {
			p.write(t, "encoder.toml", pipelineWith("", "[policy.main.encoder.obs]\nkind = \"normed\"\n"))
			p.says(t, `kind = "normed"`, "show", "--expanded", "encoder.toml")
			p.says(t, "evaluation: return", "train", "encoder.toml", "--set", "run.name=encoder")
			p.says(t, "wrote", "export", "encoder", "--format", "safetensors", "--output", "encoder.safetensors")
			if b, err := os.ReadFile(filepath.Join(p.dir, "encoder.safetensors")); err != nil || !strings.Contains(string(b), "actor.obs.norm.weight") {
				t.Errorf("no layer norm is in the file (%v)", err)
			}
		}}
}

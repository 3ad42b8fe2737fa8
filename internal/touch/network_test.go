package touch

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	return axis{name: "a layer", doors: 4,
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
	in, out := p.input(&o.in[0]), p.output(&o.node)
	for r := range rows {
		for j := range o.width {
			out.data[r*out.row+j] = o.by * in.data[r*in.row+j*in.col]
		}
	}
}

func (o *scaled) backward(s *shard, rows int) {
	e := &o.in[0]
	if e.from == nil {
		return
	}
	g, below := s.gradient(&o.node), s.below(e, rows)
	for r := range rows {
		for j := range o.width {
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
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

func TestToy_IsNamed(t *testing.T) {
	n := policy.MLP{Obs: 4, Actions: 2, Hidden: []int{8}, Activation: policy.Tanh, ShareTrunk: true}.Network()
	n.Nodes = append(n.Nodes, policy.Node{Name: "toy", In: []string{n.Policy[0].From}, Scale: &layer.Scale{By: 2}})
	n.Policy[0].From = "toy"
	if _, err := cuda.New(cuda.Options{}).Compile(&n); !errors.Is(err, policy.ErrUnsupported) || !strings.Contains(err.Error(), "node toy, scale(2)") {
		t.Error(err)
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
		},
		check: func(t *testing.T, p *toys) {
			p.computes(t, "scaled")
			p.passes(t, "./gpu/cuda", "TestToy_IsNamed") // which has no file for it
			p.write(t, "layer.toml", pipelineWith("", `[policy.main.net]
nodes = [{ name = "trunk", in = ["obs"], dense = { out = 8 } }, { name = "toy", in = ["trunk"], scale = { by = -1.5 } }]
`))
			p.says(t, "evaluation: return", "train", "layer.toml", "--set", "run.name=layer")
			p.says(t, `node "toy": scale(-1.5) in an ONNX file is not supported`, "export", "layer", "--format", "onnx")
		}}
}

func headAxis() axis {
	return axis{name: "a head", doors: 4,
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
		},
		check: func(t *testing.T, p *toys) { p.computes(t, "tempered") }}
}

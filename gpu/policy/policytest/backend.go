package policytest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// Tolerance says how far a backend may be from the reference in float64.
type Tolerance struct {
	Output   float64 // values and log-probabilities, absolute
	Gradient float64 // over the largest element of the gradient
	Params   float64 // after the steps of a dataset, in units of the learning rate
	// Allocates excuses a backend from running without allocation. Where it does not, the test cannot be parallel: what others allocate counts.
	Allocates bool
	// Without names what the backend leaves out, by the network's name in Cases: it must refuse these.
	Without []string
	// Brief names the networks, likewise, for which the tests of the algorithm alone are left out, since they take minutes: it is the same
	// for all networks.
	Brief []string
}

// Float32 is the tolerance of a backend that computes in float32.
var Float32 = Tolerance{Output: 2e-5, Gradient: 2e-5, Params: 0.02}

// TestBackend runs the whole suite; with -short it leaves out the largest network.
func TestBackend(t *testing.T, b policy.Backend, tol Tolerance) {
	for _, c := range cases() {
		if testing.Short() && c.net.Obs() > 32 {
			continue
		}
		t.Run(c.name, func(t *testing.T) { (&suite{Backend: b, tol: tol, shape: c}).run(t) })
	}
}

// TestNetwork runs what the suite has about one of its networks, by its name in Cases.
func TestNetwork(t *testing.T, b policy.Backend, tol Tolerance, name string) {
	for _, c := range cases() {
		if c.name == name {
			(&suite{Backend: b, tol: tol, shape: c}).run(t)
			return
		}
	}
	t.Fatalf("there is no network %q", name)
}

func (s *suite) run(t *testing.T) {
	if slices.Contains(s.tol.Without, s.shape.name) {
		if _, err := s.Compile(&s.shape.net); !errors.Is(err, policy.ErrUnsupported) {
			t.Errorf("Compile = %v, want ErrUnsupported", err)
		}
		return
	}
	t.Run("forward equals the reference", s.forward)
	t.Run("greedy takes the most probable action", s.greedy)
	t.Run("rows are independent in every bit", s.rowsAreIndependent)
	t.Run("values alone are the same values", s.valueOnly)
	t.Run("a mask without a legal action is an error", s.noLegalAction)
	t.Run("strange numbers give legal actions", s.strangeNumbers)
	t.Run("gradient equals the reference and finite differences", s.gradient)
	t.Run("updates equal the reference", s.updates)
	t.Run("ratio is exactly 1 with the weights that acted", s.ratioOne)
	t.Run("invalid rows enter nothing", s.invalidRows)
	t.Run("padding enters nothing", s.padding)
	t.Run("S19 gradients go back to the first row of a chunk", func(t *testing.T) { chunks(t, s) })
	t.Run("burn-in brings states up to date, and is not learned from", s.burnsIn)
	t.Run("updates repeat in every bit", s.repeats)
	t.Run("state continues in every bit", s.continues)
	t.Run("targets that are not finite are errors that name the row", s.badTargets)
	t.Run("flags that are neither 0 nor 1 are errors that name the row", s.badFlags)
	t.Run("numbers that are not finite do not reach parameters", s.notFinite)
	t.Run("what does not fit is refused", s.wrongSizes)
	t.Run("S32 words that are not known are refused", s.unknownWords)
	if !slices.Contains(s.tol.Brief, s.shape.name) {
		s.algorithm(t)
	}
	if !s.tol.Allocates {
		t.Run("acting and updating do not allocate", s.memory)
	}
	if s.shape.name == cases()[0].name {
		t.Run("large batches act like small ones", s.largeBatches)
	}
}

// algorithm tests what is the same for all networks.
func (s *suite) algorithm(t *testing.T) {
	t.Run("S18 returns are normalised and S23 the learning rate follows the divergence", s.returns)
	t.Run("S18 actor and critic are clipped apart", s.clippedApart)
	t.Run("V-trace equals the reference", s.vtrace)
	t.Run("a step on several minibatches is that on one", s.accumulates)
	t.Run("parts of blocks are learned from like blocks without the other rows", s.parts)
	t.Run("S21 rows of agents that do not act enter nothing", s.inactiveRows)
	t.Run("target_kl ends the epochs", s.targetKL)
}

type suite struct {
	policy.Backend
	tol   Tolerance
	shape shape
}

// shape is a network with the kind of data it meets.
type shape struct {
	name        string
	net         policy.Network
	kinks       bool // its gradient is not continuous
	masked, soa bool
	steps, envs int
	valueClip   float64
	minibatch   int
}

// cases lists what every backend computes, a row for each network.
func cases() []shape {
	const tanh, relu, elu = policy.Tanh, policy.ReLU, policy.ELU
	all := []shape{
		mlp(policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: tanh}, shape{}),
		mlp(policy.MLP{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: tanh, ShareTrunk: true}, shape{}),
		mlp(policy.MLP{Obs: 7, Actions: 5, Hidden: []int{33, 17, 20}, Activation: relu, NormalizeObs: true}, shape{masked: true, soa: true, envs: 29}),
		mlp(policy.MLP{Obs: 3, Actions: 18, Hidden: []int{40}, Activation: elu, ShareTrunk: true, NormalizeObs: true}, shape{masked: true, valueClip: 0.2}),
		mlp(policy.MLP{Obs: 19, Actions: 1, Activation: tanh, NormalizeObs: true}, shape{soa: true}),
		mlp(policy.MLP{Obs: 6, Actions: 3, Activation: tanh, ShareTrunk: true}, shape{masked: true}),
		mlp(policy.MLP{Obs: 65, Actions: 9, Hidden: []int{130, 96}, Activation: tanh}, shape{steps: 2, envs: 51, minibatch: 80}),
		{name: "dense nodes and activations of all kinds", net: unequal()},
		{name: "a shared activation", net: squashed()},
		{name: "normalised vectors", net: normalised(), soa: true},
		mlp(policy.MLP{Obs: 5, Actions: 3, Hidden: []int{20, 17}, Activation: policy.GELU, ShareTrunk: true}, shape{}),
		{name: "activations that are no functions of their result", net: bent(), soa: true},
		{name: "several inputs", net: several(), soa: true},
		{name: "stacked frames of bytes", net: pictures(policy.Input{Shape: []int{13, 11, 1}, Stack: 4}), steps: 5, minibatch: 32},
		{name: "pictures of bytes", net: pictures(policy.Input{Shape: []int{10, 12, 3}}), soa: true, steps: 5, minibatch: 32},
		{name: "stacked frames with the channels first", net: pictures(policy.Input{Shape: []int{2, 12, 9}, Stack: 2, CHW: true}), steps: 5, minibatch: 32},
		{name: "strided convolutions", net: strided(), steps: 5, minibatch: 32},
		{name: "convolutions in tiles", net: tiled(), steps: 5, minibatch: 32},
		{name: "residual blocks", net: residual(), kinks: true, steps: 5, minibatch: 32},
		{name: "joined and normalised images", net: joined(), kinks: true, soa: true, steps: 5, minibatch: 32},
		{name: "images with activations that are no functions of their result", net: curved(), kinks: true, steps: 5, minibatch: 32},
		mlp(policy.MLP{Obs: 5, Hidden: []int{24}, Activation: tanh,
			Heads: policy.Heads{Policy: []policy.Dist{gaussian(3, head.Free)}}}, shape{soa: true}),
		mlp(policy.MLP{Obs: 5, Hidden: []int{24}, Activation: tanh, ShareTrunk: true,
			Heads: policy.Heads{LogStd: policy.NetworkStd, Policy: []policy.Dist{gaussian(2, head.Tanh)}}}, shape{valueClip: 0.2}),
		mlp(policy.MLP{Obs: 4, Hidden: []int{16}, Activation: tanh,
			Heads: policy.Heads{LogStd: policy.FixedStd, LogStdInit: -0.5, Policy: []policy.Dist{gaussian(1, head.Free)}}}, shape{}),
		mlp(policy.MLP{Obs: 5, Hidden: []int{24}, Activation: elu, Heads: policy.Heads{
			Policy: []policy.Dist{{Action: "action", Start: -1, MultiCategorical: &head.MultiCategorical{Counts: []int{3, 2, 5}}}}}}, shape{masked: true}),
		mlp(policy.MLP{Obs: 5, Hidden: []int{24}, Activation: tanh, Heads: policy.Heads{
			Policy: []policy.Dist{{Action: "action", Bernoulli: &head.Bernoulli{N: 4}}}}}, shape{masked: true, soa: true}),
		mlp(policy.MLP{Obs: 5, Hidden: []int{24}, Activation: tanh, NormalizeObs: true, Heads: policy.Heads{Policy: []policy.Dist{
			{Action: "gear", Start: 2, Categorical: &head.Categorical{N: 3}}, gaussian(2, head.Free),
			{Action: "lights", Bernoulli: &head.Bernoulli{N: 2}}}}}, shape{masked: true}),
	}
	bounded := gaussian(2, head.Tanh)
	bounded.Gaussian.LogStd = head.Range{Min: -0.2, Max: 0.3}
	all = append(all,
		mlp(policy.MLP{Obs: 5, Hidden: []int{24}, Activation: tanh, Heads: policy.Heads{LogStd: policy.NetworkStd, PolicyGain: 1,
			Policy: []policy.Dist{bounded}}}, shape{kinks: true}),
		shape{name: "a gated recurrent unit", net: recurrent(policy.Node{GRU: &layer.GRU{Size: 20}}, 3)},
		shape{name: "long short-term memories of policy and value", net: memories(), soa: true, steps: 5, envs: 21, minibatch: 40},
		shape{name: "a gated recurrent unit in chunks of one row", net: recurrent(policy.Node{GRU: &layer.GRU{Size: 5}}, 1), masked: true})
	for i := range all {
		s := &all[i]
		s.steps, s.envs, s.minibatch = cmp.Or(s.steps, 9), cmp.Or(s.envs, 13), cmp.Or(s.minibatch, 48)
	}
	return all
}

// Cases yields the name and a dataset of every network that TestBackend runs, for comparisons of one backend's variants.
func Cases(yield func(name string, o Options) bool) {
	for _, s := range cases() {
		if !yield(s.name, s.options(1)) {
			return
		}
	}
}

func (s *shape) options(blocks int) Options {
	return Options{Network: s.net, Steps: s.steps, Envs: s.envs, Blocks: blocks, Masked: s.masked, SoA: s.soa, InvalidEvery: 12, Seed: 42}
}

// mlp completes the row of a MLP.
func mlp(m policy.MLP, s shape) shape {
	trunk := "separate"
	if m.ShareTrunk {
		trunk = "shared"
	}
	s.net, s.kinks = m.Network(), s.kinks || m.Activation == policy.ReLU
	s.name = fmt.Sprintf("%d-%v-%d %s %s", m.Obs, m.Hidden, m.Actions, m.Activation, trunk)
	for i, d := range s.net.Dists() {
		if len(m.Policy) > 0 {
			s.name += fmt.Sprintf(" %v from %d", d, s.net.Policy[i].Start)
		}
	}
	return s
}

// gaussian is a Box with bounds that cut some actions off, or that it is scaled to.
func gaussian(n int, squash head.Squash) policy.Dist {
	d := policy.Dist{Action: "steer", Gaussian: &head.Gaussian{N: n, Squash: squash}, Bounds: &policy.Bounds{}}
	for i := range n {
		d.Bounds.Low, d.Bounds.High = append(d.Bounds.Low, -1-float32(i)), append(d.Bounds.High, 0.5)
	}
	return d
}

// unequal is a network whose parts have as little in common as possible: a trunk that begins with an activation, an actor
// with two nodes of its own and a critic that reads the trunk where the actor's activations begin.
func unequal() policy.Network {
	dense := func(name, in string, out int) policy.Node {
		return policy.Node{Name: name, In: []string{in}, Dense: &layer.Dense{Out: out, Gain: 1}}
	}
	activation := func(name, in string, f layer.Func) policy.Node {
		return policy.Node{Name: name, In: []string{in}, Activation: &layer.Activation{Func: f}}
	}
	return policy.Network{Format: policy.Format,
		Inputs: []policy.Input{{Path: "obs", Shape: []int{5}}},
		Nodes: []policy.Node{activation("squashed", "obs", policy.Tanh), dense("trunk", "squashed", 21),
			activation("curved", "trunk", policy.ELU), activation("bounded", "curved", policy.Tanh),
			dense("actor.0", "bounded", 12), dense("actor.1", "actor.0", 30), dense("actor.head", "actor.1", 4),
			dense("critic.head", "trunk", 1)},
		Policy: []policy.Dist{{Action: "action", From: "actor.head", Categorical: &head.Categorical{N: 4}}},
		Values: []policy.ValueHead{{Name: "value", From: "critic.head"}}}
}

// squashed is a network whose actor and critic share an activation and no parameters.
func squashed() policy.Network {
	n := policy.MLP{Obs: 5, Actions: 3, Hidden: []int{20}, Activation: policy.ELU}.Network()
	for i := range n.Nodes {
		if n.Nodes[i].In[0] == "obs" {
			n.Nodes[i].In = []string{"squashed"}
		}
	}
	node := policy.Node{Name: "squashed", In: []string{"obs"}, Activation: &layer.Activation{Func: policy.Tanh}}
	n.Nodes = slices.Insert(n.Nodes, 0, node)
	return n
}

// normalised is a network whose layer norms read observations and a layer, each with an activation behind it.
func normalised() policy.Network {
	norm := func(name, in string) policy.Node {
		return policy.Node{Name: name, In: []string{in}, LayerNorm: &layer.LayerNorm{}}
	}
	return body([]int{7}, 3, norm("norm.0", "obs"), activation("elu", "norm.0", policy.ELU),
		policy.Node{Name: "dense", In: []string{"elu"}, Dense: &layer.Dense{Out: 21, Gain: 1}},
		norm("norm.1", "dense"), activation("tanh", "norm.1", policy.Tanh))
}

// bent has activations whose backward pass reads their argument again: an input, a dense with other readers, another activation, a
// sum and a layer norm.
func bent() policy.Network {
	return body([]int{7}, 3, activation("silu.0", "obs", policy.SiLU), policy.Node{Name: "dense", In: []string{"silu.0"}, Dense: &layer.Dense{Out: 21, Gain: 1}},
		activation("gelu.0", "dense", policy.GELU), activation("silu.1", "gelu.0", policy.SiLU),
		policy.Node{Name: "sum", In: []string{"silu.1", "dense", "gelu.0"}, Add: &layer.Add{}}, activation("gelu.1", "sum", policy.GELU),
		policy.Node{Name: "norm", In: []string{"gelu.1"}, LayerNorm: &layer.LayerNorm{}}, activation("silu.2", "norm", policy.SiLU),
		activation("tanh", "silu.2", policy.Tanh))
}

// recurrent is a network of one core between dense layers.
func recurrent(core policy.Node, chunk int) policy.Network {
	core.Name, core.In = "trunk.core", []string{"trunk.0.activation"}
	n := policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{6}, Norm: policy.Running}}, Nodes: []policy.Node{
		{Name: "trunk.0", In: []string{"obs"}, Dense: &layer.Dense{Out: 24, Gain: 1}},
		{Name: "trunk.0.activation", In: []string{"trunk.0"}, Activation: &layer.Activation{Func: policy.Tanh}},
		core,
	}, Heads: policy.Heads{Policy: []policy.Dist{{Action: "action", Categorical: &head.Categorical{N: 3}}}}}.Network()
	n.Chunk = chunk
	return n
}

// memories is a network with a core for the policy and one, behind another, for the value, that read what enters.
func memories() policy.Network {
	lstm := func(name, in string, size int) policy.Node {
		return policy.Node{Name: name, In: []string{in}, LSTM: &layer.LSTM{Size: size}}
	}
	n := policy.Body{Inputs: []policy.Input{{Path: "obs", Shape: []int{5}}},
		Nodes: []policy.Node{lstm("actor.core", "obs", 17), lstm("critic.core", "obs", 16),
			{Name: "critic.curved", In: []string{"critic.core"}, Activation: &layer.Activation{Func: policy.ELU}},
			{Name: "critic.upper", In: []string{"critic.curved"}, GRU: &layer.GRU{Size: 9}}},
		Heads: policy.Heads{Policy: []policy.Dist{gaussian(2, head.Free)}}}.Network()
	n.Chunk = 5
	return n
}

// params returns parameters with large heads, so that actions, ratios and gradients are not all alike.
func (s *suite) params(seed uint64) []float32 {
	n := s.shape.net.Clone()
	for i := range n.Nodes {
		if node := &n.Nodes[i]; node.Dense != nil && strings.Contains(node.Name, ".head") {
			node.Dense = &layer.Dense{Out: node.Dense.Out, Gain: 2}
		}
	}
	p := policy.Init(&n, seed)
	for _, q := range n.Params() {
		if q.Rows == 1 {
			for j := range q.Cols {
				p[q.Offset+j] += 0.1 * float32(j%3-1)
			}
		}
	}
	return p
}

func (s *suite) dataset(t testing.TB, blocks int) *policy.Dataset {
	return NewDataset(t, s.shape.options(blocks))
}

func (s *suite) actor(t testing.TB, params []float32, d *policy.Dataset) policy.Actor {
	t.Helper()
	a, err := policy.NewActor(s, &s.shape.net, s.shape.envs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	if err := a.Load(policy.Weights{Version: 1, Params: params, ObsMean: d.ObsMean, ObsScale: d.ObsScale}); err != nil {
		t.Fatal(err)
	}
	return a
}

func (s *suite) learner(t testing.TB, params []float32, c ppo.Config) ppo.Learner {
	t.Helper()
	l, err := ppo.NewLearner(s, &s.shape.net, params, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func (s *suite) config() ppo.Config {
	c := ppo.Defaults()
	c.Epochs, c.Minibatch, c.ValueClip = 2, s.shape.minibatch, s.shape.valueClip
	return c
}

// variants are the configurations that differ in which rows of a dataset enter, and how often: GAE and V-trace, each without burn-in and,
// where a chunk has more rows than one, with it.
func (s *suite) variants() (list []ppo.Config) {
	for _, vtrace := range []bool{false, true} {
		c := s.config()
		c.VTrace = vtrace
		list = append(list, c)
		if c.BurnInRows = s.shape.net.Chunk - 1; c.BurnInRows > 0 {
			list = append(list, c)
		}
	}
	return list
}

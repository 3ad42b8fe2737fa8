package builtin

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// Kinds of networks that take no images.
const (
	kindMLP   = "mlp"
	kindNodes = "nodes" // the layers of the key nodes
)

// obsName is how nodes read the observation.
const obsName = "obs"

// activations lists the names of the functions.
var activations = func() (names []string) {
	for _, f := range layer.Funcs() {
		names = append(names, string(f))
	}
	return names
}()

// imageKinds lists the kinds of networks over images, with the width of the dense layer after their convolutions.
var imageKinds = map[policy.Kind]int{policy.NatureCNN: 512, policy.Impala: 256}

// expand fills in the defaults of the kind of network, and writes kinds of images out as nodes.
func (t *PolicyTable) expand(bad func(key, reason, help string)) {
	net := &t.Net
	if net.Kind == "" && net.Nodes != nil {
		net.Kind = kindNodes
	}
	net.checkCore(t.Plugin != nil, bad)
	switch width, image := imageKinds[policy.Kind(net.Kind)]; {
	case net.Kind == kindNodes:
		t.checkNodes(bad)
		return
	case net.Nodes != nil:
		bad("net.nodes", fmt.Sprintf("are given for the kind %q", net.Kind), `leave one of them out, or write kind = "nodes"`)
	case net.Kind == "" || net.Kind == kindMLP:
		net.fill(kindMLP, []int{64, 64}, policy.Tanh)
	case image:
		net.fill(net.Kind, []int{width}, policy.ReLU)
	default:
		bad("net.kind", fmt.Sprintf("is %q", net.Kind), "this version has: mlp, nature_cnn, impala, nodes")
		return
	}
	net.check(bad)
	if _, image := imageKinds[policy.Kind(net.Kind)]; image {
		t.writeOut()
	}
}

// fill fills in a table's missing keys.
func (n *Net) fill(kind string, hidden []int, f policy.Activation) {
	n.Kind = kind
	if n.Hidden == nil {
		n.Hidden = hidden
	}
	if n.Activation == "" {
		n.Activation = string(f)
	}
}

// check checks layers.
func (n *Net) check(bad func(key, reason, help string)) {
	if !slices.Contains(activations, n.Activation) {
		bad("net.activation", fmt.Sprintf("is %q", n.Activation), "use one of: "+strings.Join(activations, ", "))
	}
	if len(n.Hidden) == 0 || len(n.Hidden) > 16 {
		bad("net.hidden", fmt.Sprintf("has %d layers", len(n.Hidden)), "use 1 to 16 widths, such as [64, 64]")
	}
	checkWidths("net.hidden", n.Hidden, bad)
	if g := n.InitGain; g != nil && !(*g > 0 && *g <= maxGain) {
		bad("net.init_gain", fmt.Sprintf("is %v", *g), fmt.Sprintf("use a number above 0, %d at most; left out it is the root of 2", maxGain))
	}
}

// maxGain bounds init_gain, with which the outputs of each layer grow.
const maxGain = 100

// writeOut replaces a kind of network over images by its nodes, with its core: one trunk, unless share_trunk says that policy
// and value have one each.
func (t *PolicyTable) writeOut() {
	parts := []string{"trunk"}
	if t.ShareTrunk != nil && !*t.ShareTrunk {
		parts = []string{"actor", "critic"}
	}
	var nodes []policy.Node
	for _, part := range parts {
		nodes = append(nodes, policy.Kind(t.Net.Kind).Nodes(part, obsName, t.Net.Hidden, policy.Activation(t.Net.Activation))...)
		if core := t.Net.core(); core != nil {
			nodes = append(nodes, core.Node(part+".core", nodes[len(nodes)-1].Name))
		}
	}
	t.images = t.Net.Kind
	t.Net, t.ShareTrunk = Net{Kind: kindNodes, Nodes: &nodes, InitGain: t.Net.InitGain, Chunk: t.Net.Chunk}, nil
}

// checkCore checks the recurrent layer, and how many rows are learned from together, and fills in defaults. A policy that is computed
// elsewhere may keep a state that this program does not know yet.
func (n *Net) checkCore(elsewhere bool, bad func(key, reason, help string)) {
	if n.Core != nil {
		n.Core.check(bad)
	}
	keeps := n.Core != nil || n.Nodes != nil && slices.ContainsFunc(*n.Nodes, func(x policy.Node) bool { return x.Core() != nil })
	switch {
	case keeps && n.Chunk == nil:
		n.Chunk = new(defaultChunk)
	case !keeps && n.Chunk != nil && !elsewhere:
		bad("net.chunk", "is given, and no layer keeps a state", `leave it out, or add core = { kind = "gru" }`)
	case n.Chunk != nil && (*n.Chunk < 1 || *n.Chunk > policy.MaxChunk):
		bad("net.chunk", fmt.Sprintf("is %d", *n.Chunk), fmt.Sprintf("use 1 to %d rows", policy.MaxChunk))
	}
}

func (c *Core) check(bad func(key, reason, help string)) {
	if !slices.Contains([]policy.CoreKind{policy.CoreGRU, policy.CoreLSTM}, c.Kind) {
		bad("net.core.kind", fmt.Sprintf("is %q", c.Kind), "use gru or lstm")
	}
	if c.Size == nil {
		c.Size = new(defaultCore)
	}
	if *c.Size < 1 || *c.Size > maxWidth {
		bad("net.core.size", fmt.Sprintf("is %d", *c.Size), fmt.Sprintf("use 1 to %d", maxWidth))
	}
}

// core returns the layer that keeps a state, nil if there is none.
func (n *Net) core() *policy.Core {
	if n.Core == nil {
		return nil
	}
	return &policy.Core{Kind: n.Core.Kind, Size: *n.Core.Size}
}

// checkNodes makes the checks of nodes that need no environment, and fills in gains.
func (t *PolicyTable) checkNodes(bad func(key, reason, help string)) {
	switch {
	case t.Net.Nodes == nil || len(*t.Net.Nodes) == 0:
		bad("net.nodes", "are none", `add nodes = [{ name = "trunk", in = ["obs"], dense = { out = 64 } }]`)
		return
	case t.ShareTrunk != nil:
		bad("share_trunk", "is given next to net.nodes", "leave it out: the nodes say what policy and value share")
	case t.Net.InitGain != nil:
		bad("net.init_gain", "is given next to net.nodes", "leave it out: each node has a gain of its own, such as dense = { out = 64, gain = 1.0 }")
	case t.Net.Core != nil:
		bad("net.core", "is given next to net.nodes", "leave it out: a core is a node, such as gru = { size = 128 }")
	case len(t.Net.Hidden) > 0 || t.Net.Activation != "":
		bad("net", "has hidden or activation next to nodes", "leave them out: each layer and each activation is a node")
	}
	nodes := *t.Net.Nodes
	place := map[string]int{}
	for i := range nodes {
		place[nodes[i].Name] = i
	}
	for i := range nodes {
		n := &nodes[i]
		wrong := func(reason, help string) { bad("net.nodes", fmt.Sprintf("[%d], %q, %s", i, n.Name, reason), help) }
		switch _, err := n.Op(); {
		case n.Name == "" || n.Name == obsName || strings.HasSuffix(n.Name, ".head"):
			wrong("has a name that is not free", "obs is the observation, and names that end in .head are those of heads")
		case place[n.Name] != i:
			wrong(fmt.Sprintf("has the name of [%d]", place[n.Name]), "give each node a name of its own")
		case err != nil:
			wrong(err.Error(), "give it one of: "+strings.Join(policy.Layers(), ", "))
		}
		for _, in := range n.In {
			at, ok := place[in]
			switch {
			case in == obsName || ok && at < i:
			case ok:
				wrong(fmt.Sprintf("reads %q, which is not before it", in), "put it after what it reads: nodes do not go in circles")
			}
		}
		if n.Dense != nil && n.Dense.Gain == 0 {
			n.Dense.Gain = math.Sqrt2
		}
		if n.Conv2D != nil && n.Conv2D.Gain == 0 {
			n.Conv2D.Gain = math.Sqrt2
		}
	}
}

// bind makes nodes read the inputs of an environment: by their paths, or as obs where there is only one.
func bind(nodes []policy.Node, inputs []policy.Input) ([]policy.Node, error) {
	var names []string
	for i := range inputs {
		names = append(names, inputs[i].Path)
	}
	nodes = slices.Clone(nodes)
	for i := range nodes {
		n := &nodes[i]
		n.In = slices.Clone(n.In)
		for k, in := range n.In {
			switch {
			case slices.Contains(names, in):
			case in == obsName && len(inputs) == 1:
				n.In[k] = inputs[0].Path
			case in == obsName:
				return nil, &component.ConfigError{Code: codeNetwork, Key: "net", Reason: fmt.Sprintf("has a node, %q, that reads obs, and %d inputs enter", n.Name, len(inputs)),
					Help: `name one of: ` + strings.Join(names[:len(inputs)], ", ") + `; or use kind = "mlp" with an encoder for each path`}
			default:
				return nil, &component.ConfigError{Code: codeNetwork, Key: "net.nodes", Reason: fmt.Sprintf("[%d], %q, reads %q, which is no node and no input", i, n.Name, in),
					Help: "what it can read: " + strings.Join(names, ", ")}
			}
		}
		names = append(names, n.Name)
	}
	return nodes, nil
}

// network makes the network of a table for an environment.
func (t *PolicyTable) network(env *hostabi.EnvSpec, inputs []policy.Input, encoders []policy.Encoder, actions []policy.Dist) (policy.Network, error) {
	n, err := t.layers(env, inputs, encoders, actions)
	if t.Net.InitGain != nil {
		n.Nodes = withGain(n.Nodes, *t.Net.InitGain)
	}
	return n, err
}

// withGain returns nodes whose layers before the heads begin with a gain.
func withGain(nodes []policy.Node, gain float64) []policy.Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		n := &nodes[i]
		switch {
		case strings.HasPrefix(n.Name, "actor.head") || n.Name == "critic.head":
		case n.Dense != nil:
			d := *n.Dense
			d.Gain, n.Dense = gain, &d
		case n.Conv2D != nil:
			c := *n.Conv2D
			c.Gain, n.Conv2D = gain, &c
		}
	}
	return nodes
}

func (t *PolicyTable) layers(env *hostabi.EnvSpec, inputs []policy.Input, encoders []policy.Encoder, actions []policy.Dist) (policy.Network, error) {
	heads := policy.Heads{Policy: actions, LogStd: t.Action.LogStd, LogStdInit: t.Action.LogStdInit}
	if t.Net.Kind == kindMLP {
		hidden, err := t.criticOnly(inputs)
		if err != nil {
			return policy.Network{}, err
		}
		share := t.Net.Core != nil || hidden == nil && slices.ContainsFunc(encoders, func(e policy.Encoder) bool { return e.Kind.Pictures() })
		if t.ShareTrunk != nil {
			share = *t.ShareTrunk
		}
		return policy.MLP{
			Inputs: inputs, Encoders: encoders, Hidden: t.Net.Hidden, Activation: policy.Activation(t.Net.Activation),
			CriticOnly: hidden, ShareTrunk: share, Core: t.Net.core(), Heads: heads,
		}.Network(), nil
	}
	for i, tensor := range env.All(hostabi.RoleObservation) {
		if in := &inputs[i]; !tensor.Discrete() && tensor.Rank > 0 { // nodes know about axes
			in.Shape, in.CHW = axesOf(&tensor), tensor.Flags&hostabi.TensorImageCHW != 0
		}
	}
	nodes, err := bind(*t.Net.Nodes, inputs)
	return policy.Body{Inputs: inputs, Nodes: nodes, Heads: heads}.Network(), err
}

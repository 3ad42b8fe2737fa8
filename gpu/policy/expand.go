package policy

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Activation is the function between layers.
type Activation = layer.Func

// Activations.
const (
	Tanh = layer.Tanh
	ReLU = layer.ReLU
	ELU  = layer.ELU
	GELU = layer.GELU
	SiLU = layer.SiLU
)

// MLP is the network of kind "mlp", for a flat observation: an encoder of dense layers for policy and value each (or one for both with
// ShareTrunk), then a core if there is one, then a linear head for each action and one of a single value. As JSON it is a network of format 0.
type MLP struct {
	Obs          int        `json:"obs"`     // elements of an observation
	Actions      int        `json:"actions"` // values of the action
	Hidden       []int      `json:"hidden"`  // widths of the encoder's layers
	Activation   Activation `json:"activation"`
	ShareTrunk   bool       `json:"share_trunk"`
	NormalizeObs bool       `json:"normalize_obs"`
	// HiddenGain is that of the hidden layers' orthogonal initialisation. 0 means √2 (Huang et al., "The 37 implementation
	// details of PPO", 2022).
	HiddenGain float64 `json:"hidden_gain"`
	Heads

	// Inputs with their encoders, in place of Obs and NormalizeObs. Without an encoder an input is as it enters.
	Inputs   []Input   `json:"-"`
	Encoders []Encoder `json:"-"`
	// CriticOnly says by input which the value alone reads; it is empty where ShareTrunk is set.
	CriticOnly []bool `json:"-"`
	Core       *Core  `json:"-"`
}

// Core is a layer with a state, of one of the known kinds.
type Core struct {
	Kind CoreKind
	Size int // of its output
}

// CoreKind names a layer with a state.
type CoreKind string

// Kinds of cores.
const (
	CoreGRU  CoreKind = "gru"
	CoreLSTM CoreKind = "lstm"
)

// Node returns the node of a core, called name, that reads another.
func (c *Core) Node(name, in string) Node {
	node := Node{Name: name, In: []string{in}}
	switch c.Kind {
	case CoreGRU:
		node.GRU = &layer.GRU{Size: c.Size}
	case CoreLSTM:
		node.LSTM = &layer.LSTM{Size: c.Size}
	}
	return node
}

// Heads read the encoded inputs.
type Heads struct {
	// Policy are the distributions of the actions, without the nodes that they read; empty = one of MLP.Actions values.
	Policy     []Dist  `json:"-"`
	LogStd     LogStd  `json:"-"` // of Gaussians; "" means ParameterStd
	LogStdInit float64 `json:"-"` // where it does not depend on the state
	// Gains of the orthogonal initialisation. 0 means 0.01 and 1.
	PolicyGain float64 `json:"policy_gain"`
	ValueGain  float64 `json:"value_gain"`
}

// LogStd is where the logarithms of a Gaussian's standard deviations come from.
type LogStd string

// Sources of standard deviations.
const (
	ParameterStd LogStd = "parameter" // parameters, the same in every state
	NetworkStd   LogStd = "network"   // outputs of the network
	FixedStd     LogStd = "fixed"     // a constant
)

// outputs returns how many parameters of a distribution depend on the state, and how many others are appended to them.
func (h *Heads) outputs(d *Dist) (elems, appended int) {
	of, err := d.Of()
	if err != nil {
		return 0, 0
	}
	if of.Continuous() && h.LogStd != NetworkStd {
		return of.Size(), of.Elems() - of.Size()
	}
	return of.Elems(), 0
}

// Network expands the description, whose chunks the caller sets where there is a core: the nodes of the actor up to its head, then the critic's, or the trunk's and then
// both heads.
func (m MLP) Network() Network {
	n := Network{Format: Format, Inputs: []Input{{Path: "obs", Shape: []int{m.Obs}}}}
	if m.NormalizeObs {
		n.Inputs[0].Norm = Running
	}
	if len(m.Inputs) > 0 {
		n.Inputs = m.Inputs
	}
	encoder := func(name string) string {
		hidden := m.CriticOnly
		if name != "actor" {
			hidden = nil
		}
		last := n.denses(name, n.join(m.Encoders, hidden, name, m.HiddenGain), m.Hidden, m.Activation, m.HiddenGain)
		if m.Core == nil {
			return last
		}
		n.Nodes = append(n.Nodes, m.Core.Node(name+".core", last))
		return name + ".core"
	}
	var trunk string
	if m.ShareTrunk {
		trunk = encoder("trunk")
	}
	of := func(name string) string {
		if m.ShareTrunk {
			return trunk
		}
		return encoder(name)
	}
	if len(m.Policy) == 0 {
		m.Policy = []Dist{{Action: "action", Categorical: &head.Categorical{N: m.Actions}}}
	}
	n.act(&m.Heads, of("actor"))
	n.value(&m.Heads, of("critic"))
	return n
}

// act adds the heads of the actions, which read a node.
func (n *Network) act(h *Heads, from string) {
	n.Policy = slices.Clone(h.Policy)
	for i := range n.Policy {
		d, suffix := &n.Policy[i], ""
		if i > 0 {
			suffix = fmt.Sprintf(".%d", i)
		}
		elems, appended := h.outputs(d)
		d.From = n.dense("actor.head"+suffix, from, elems, h.PolicyGain, 0.01)
		if appended > 0 {
			n.Nodes = append(n.Nodes, Node{Name: "actor.log_std" + suffix, In: []string{d.From},
				Append: &layer.Append{N: appended, Init: h.LogStdInit, Fixed: h.LogStd == FixedStd}})
			d.From = "actor.log_std" + suffix
		}
	}
}

// value adds the head of the value, which reads a node.
func (n *Network) value(h *Heads, from string) {
	n.Values = []ValueHead{{Name: "value", From: n.dense("critic.head", from, 1, h.ValueGain, 1)}}
}

package policy

import (
	"fmt"
	"math"
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
)

// MLP is the network of kind "mlp", for a flat observation: an encoder of dense layers for
// policy and value each (or one for both with ShareTrunk), then a linear head for each action and one of a single
// value. As JSON it is a network of format 0.
type MLP struct {
	Obs          int        `json:"obs"`     // elements of an observation
	Actions      int        `json:"actions"` // values of the action
	Hidden       []int      `json:"hidden"`  // widths of the encoder's layers
	Activation   Activation `json:"activation"`
	ShareTrunk   bool       `json:"share_trunk"`
	NormalizeObs bool       `json:"normalize_obs"`
	// Gains of the orthogonal initialisation: hidden layers, policy head, value head. 0 means √2, 0.01 and 1 (Huang et al.,
	// "The 37 implementation details of PPO", 2022).
	HiddenGain float64 `json:"hidden_gain"`
	PolicyGain float64 `json:"policy_gain"`
	ValueGain  float64 `json:"value_gain"`

	// Policy are the distributions of the actions, without the nodes that they read; empty = one of Actions values.
	Policy     []Dist  `json:"-"`
	LogStd     LogStd  `json:"-"` // of Gaussians; "" means FreeStd
	LogStdInit float64 `json:"-"` // where it does not depend on the state
}

// LogStd is where the logarithms of a Gaussian's standard deviations come from.
type LogStd string

// Sources of standard deviations.
const (
	FreeStd  LogStd = "free"  // parameters, the same in every state
	StateStd LogStd = "state" // outputs of the network
	FixedStd LogStd = "fixed" // a constant
)

// outputs returns how many parameters of a distribution depend on the state, and how many others are appended to them.
func (m *MLP) outputs(d *Dist) (elems, appended int) {
	of, err := d.Of()
	if err != nil {
		return 0, 0
	}
	if of.Continuous() && m.LogStd != StateStd {
		return of.Size(), of.Elems() - of.Size()
	}
	return of.Elems(), 0
}

// Network expands the description: the nodes of the actor up to its head, then the critic's, or the trunk's and then
// both heads.
func (m MLP) Network() Network {
	n := Network{Format: Format, Inputs: []Input{{Path: "obs", Shape: []int{m.Obs}}}}
	if m.NormalizeObs {
		n.Inputs[0].Norm = Running
	}
	dense := func(name, in string, out int, gain, fallback float64) string {
		if gain == 0 {
			gain = fallback
		}
		n.Nodes = append(n.Nodes, Node{Name: name, In: []string{in}, Dense: &layer.Dense{Out: out, Gain: gain}})
		return name
	}
	encoder := func(name string) string {
		last := "obs"
		for i, width := range m.Hidden {
			last = dense(fmt.Sprintf("%s.%d", name, i), last, width, m.HiddenGain, math.Sqrt2)
			n.Nodes = append(n.Nodes, Node{Name: last + ".activation", In: []string{last}, Activation: &layer.Activation{Func: m.Activation}})
			last += ".activation"
		}
		return last
	}
	actor, critic := "actor", "critic"
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
	actor = of(actor)
	n.Policy = slices.Clone(m.Policy)
	if len(n.Policy) == 0 {
		n.Policy = []Dist{{Action: "action", Categorical: &head.Categorical{N: m.Actions}}}
	}
	for i := range n.Policy {
		d, suffix := &n.Policy[i], ""
		if i > 0 {
			suffix = fmt.Sprintf(".%d", i)
		}
		elems, appended := m.outputs(d)
		d.From = dense("actor.head"+suffix, actor, elems, m.PolicyGain, 0.01)
		if appended > 0 {
			n.Nodes = append(n.Nodes, Node{Name: "actor.log_std" + suffix, In: []string{d.From},
				Append: &layer.Append{N: appended, Init: m.LogStdInit, Fixed: m.LogStd == FixedStd}})
			d.From = "actor.log_std" + suffix
		}
	}
	critic = dense("critic.head", of(critic), 1, m.ValueGain, 1)
	n.Values = []ValueHead{{Name: "value", From: critic}}
	return n
}

package policy

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupported is wrapped by a backend that cannot compute a network; the message names the part.
var ErrUnsupported = errors.New("not supported by this backend")

// Activation is the function between layers.
type Activation string

// Activations.
const (
	Tanh Activation = "tanh"
	ReLU Activation = "relu"
	ELU  Activation = "elu"
)

// Network specifies a policy and a value function for a flat observation and one Discrete action: an encoder of
// dense layers for each (or one for both with ShareTrunk), then a linear head of Actions logits and one of a
// single value. Rows of a batch are independent: what a backend computes for a row does not depend, in any bit,
// on the other rows.
type Network struct {
	Obs        int        `json:"obs"`     // elements of an observation
	Actions    int        `json:"actions"` // values of the action
	Hidden     []int      `json:"hidden"`  // widths of the encoder's layers
	Activation Activation `json:"activation"`
	ShareTrunk bool       `json:"share_trunk"`
	// NormalizeObs: observations enter as clamp((obs-mean)*scale, -10, 10) with the statistics of the weights.
	NormalizeObs bool `json:"normalize_obs"`
	// Gains of the orthogonal initialisation: hidden layers, policy head, value head.
	HiddenGain float64 `json:"hidden_gain"`
	PolicyGain float64 `json:"policy_gain"`
	ValueGain  float64 `json:"value_gain"`
}

// maxLayers bounds the depth of an encoder.
const maxLayers = 64

// ObsClip bounds normalised observations.
const ObsClip = 10

// Validate reports the first thing about the network that no backend could compute.
func (n *Network) Validate() error {
	switch {
	case n.Obs < 1:
		return fmt.Errorf("network: %d observed elements", n.Obs)
	case n.Actions < 1:
		return fmt.Errorf("network: %d actions", n.Actions)
	case n.Activation != Tanh && n.Activation != ReLU && n.Activation != ELU:
		return fmt.Errorf("network: activation %q: want tanh, relu or elu", n.Activation)
	}
	if len(n.Hidden) > maxLayers {
		return fmt.Errorf("network: %d hidden layers, at most %d", len(n.Hidden), maxLayers)
	}
	for i, width := range n.Hidden {
		if width < 1 || width > 1<<16 {
			return fmt.Errorf("network: hidden layer %d has width %d", i, width)
		}
	}
	return nil
}

// Param is one tensor of the canonical parameter vector: float32, row-major, weights as [in][out].
type Param struct {
	Name   string // such as actor.0.weight, critic.head.bias
	Rows   int    // inputs, 1 for a bias
	Cols   int    // outputs
	Offset int    // of element 0 in the vector
}

// Shape is that of the tensor as others read it: [in][out] of a weight, [out] of a bias.
func (p *Param) Shape() []int {
	if strings.HasSuffix(p.Name, ".bias") {
		return []int{p.Cols}
	}
	return []int{p.Rows, p.Cols}
}

// Params returns the layout of the canonical vector, the same for every backend: for each of actor and critic
// (only trunk with ShareTrunk) the hidden layers, then its head; weight before bias.
func (n *Network) Params() []Param {
	var params []Param
	end := 0
	add := func(name string, rows, cols int) {
		params = append(params, Param{Name: name, Rows: rows, Cols: cols, Offset: end})
		end += rows * cols
	}
	layer := func(name string, in, out int) {
		add(name+".weight", in, out)
		add(name+".bias", 1, out)
	}
	encoder := func(name string) int {
		in := n.Obs
		for i, width := range n.Hidden {
			layer(fmt.Sprintf("%s.%d", name, i), in, width)
			in = width
		}
		return in
	}
	if n.ShareTrunk {
		last := encoder("trunk")
		layer("actor.head", last, n.Actions)
		layer("critic.head", last, 1)
		return params
	}
	layer("actor.head", encoder("actor"), n.Actions)
	layer("critic.head", encoder("critic"), 1)
	return params
}

// ParamCount returns the length of the canonical vector.
func (n *Network) ParamCount() int {
	params := n.Params()
	last := params[len(params)-1]
	return last.Offset + last.Rows*last.Cols
}

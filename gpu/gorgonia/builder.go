package gorgonia

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/rlhost/rlhost/gpu/policy"
)

// Builder is where a layer of one's own goes: it says which parameters a network has and how the heads are
// computed from observations. Its methods may be called concurrently. A panic in them is returned as an error,
// so gorgonia.Must is fine there. A part that it does not know is policy.ErrUnsupported, with the part's name.
type Builder interface {
	// Params returns the layout of the canonical parameter vector: tensors one after the other, without gaps. A
	// layout other than n.Params() is for programs that initialise and publish their own weights: policy.Init and
	// the blocks of policy.FormatWeights have n.Params(). Names that begin with actor. and critic. say whose a parameter
	// is: where there are no others, the gradients of the two can be clipped apart.
	Params(n *policy.Network) []policy.Param
	// Heads returns logits [rows, Actions] and value [rows, 1] for obs [rows, Obs], which is normalised already.
	// Masks, sampling and the loss are applied to what it returns. Row r of both must depend on row r of obs
	// alone, bit for bit and whatever the number of rows is: matrix products, the functions of this package and
	// gorgonia's elementwise functions keep to that.
	Heads(n *policy.Network, obs *Node, p Params) (logits, value *Node, err error)
}

// Params are the parameters of a network as nodes of one graph.
type Params struct {
	nodes map[string]*Node
	order gorgonia.Nodes
}

// Node returns the parameter with that name, of shape [Rows, Cols], or an error that names it.
func (p Params) Node(name string) (*Node, error) {
	if n, ok := p.nodes[name]; ok {
		return n, nil
	}
	return nil, fmt.Errorf("network has no parameter %q", name)
}

// Linear applies the dense layer with the parameters name.weight and name.bias.
func (p Params) Linear(name string, x *Node) (*Node, error) {
	weight, err := p.Node(name + ".weight")
	if err != nil {
		return nil, err
	}
	bias, err := p.Node(name + ".bias")
	if err != nil {
		return nil, err
	}
	return Linear(x, weight, bias)
}

// MLP builds policy.Network as it is specified there. It is the default.
type MLP struct{}

var _ Builder = MLP{}

// Params returns n.Params().
func (MLP) Params(n *policy.Network) []policy.Param { return n.Params() }

// Heads returns the outputs of the two encoders' heads, or of the trunk's.
func (MLP) Heads(n *policy.Network, obs *Node, p Params) (logits, value *Node, err error) {
	actor, critic := obs, obs
	for i := range n.Hidden {
		layer := func(encoder string, x *Node) (*Node, error) {
			y, err := p.Linear(fmt.Sprintf("%s.%d", encoder, i), x)
			if err != nil {
				return nil, err
			}
			return Activate(y, n.Activation)
		}
		if n.ShareTrunk {
			if actor, err = layer("trunk", actor); err != nil {
				return nil, nil, err
			}
			critic = actor
			continue
		}
		if actor, err = layer("actor", actor); err != nil {
			return nil, nil, err
		}
		if critic, err = layer("critic", critic); err != nil {
			return nil, nil, err
		}
	}
	if logits, err = p.Linear("actor.head", actor); err != nil {
		return nil, nil, err
	}
	value, err = p.Linear("critic.head", critic)
	return logits, value, err
}

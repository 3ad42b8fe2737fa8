package policy

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Encoder describes the nodes between one input and the joint node.
type Encoder struct {
	Kind       EncoderKind
	Hidden     []int // widths of the dense layers
	Activation Activation
	Dim        int // of EncodeEmbed
}

// Pictures reports whether encoders of the kind read pictures.
func (k EncoderKind) Pictures() bool { return k == EncodeNature || k == EncodeImpala }

// EncoderKind is the kind of an encoder.
type EncoderKind string

// Kinds of encoders.
const (
	EncodeFlat  EncoderKind = "flat"  // the input as it enters
	EncodeMLP   EncoderKind = "mlp"   // dense layers
	EncodeEmbed EncoderKind = "embed" // of a one-hot input: a vector for each value, added up over all elements

	EncodeNature = EncoderKind(NatureCNN) // of a picture, followed by dense layers
	EncodeImpala = EncoderKind(Impala)
)

// encode appends an encoder's nodes, whose names begin with name, and returns the name of the last one.
func (n *Network) encode(e *Encoder, name, in string, gain float64) string {
	switch e.Kind {
	case EncodeMLP:
		return n.denses(name, in, e.Hidden, e.Activation, gain)
	case EncodeNature, EncodeImpala:
		nodes := Kind(e.Kind).Nodes(name, in, e.Hidden, e.Activation)
		n.Nodes = append(n.Nodes, nodes...)
		return nodes[len(nodes)-1].Name
	case EncodeEmbed:
		return n.dense(name+".embed", in, e.Dim, 1, 1)
	case EncodeFlat, "":
		return in
	}
	n.Nodes = append(n.Nodes, Node{Name: name + "." + string(e.Kind), In: []string{in}}) // Validate names it
	return name + "." + string(e.Kind)
}

// dense appends a dense node and returns its name. A gain of 0 means the fallback.
func (n *Network) dense(name, in string, out int, gain, fallback float64) string {
	if gain == 0 {
		gain = fallback
	}
	n.Nodes = append(n.Nodes, Node{Name: name, In: []string{in}, Dense: &layer.Dense{Out: out, Gain: gain}})
	return name
}

// denses appends dense nodes of these widths, each with an activation, and returns the name of the last node.
func (n *Network) denses(name, in string, hidden []int, f Activation, gain float64) string {
	last := in
	for i, width := range hidden {
		last = n.dense(fmt.Sprintf("%s.%d", name, i), last, width, gain, math.Sqrt2)
		n.Nodes = append(n.Nodes, Node{Name: last + ".activation", In: []string{last}, Activation: &layer.Activation{Func: f}})
		last += ".activation"
	}
	return last
}

// join encodes all inputs but the hidden ones for the part of the network that is called name, and returns the name of the joint node.
func (n *Network) join(encoders []Encoder, hidden []bool, name string, gain float64) string {
	var parts []string
	for i := range n.Inputs {
		if i < len(hidden) && hidden[i] {
			continue
		}
		e := &Encoder{}
		if i < len(encoders) {
			e = &encoders[i]
		}
		in := &n.Inputs[i]
		part := n.encode(e, name+"."+in.Path, in.Path, gain)
		if part == in.Path && len(in.Entered()) != 1 && len(n.Inputs) > 1 {
			part = name + "." + in.Path + ".flat"
			n.Nodes = append(n.Nodes, Node{Name: part, In: []string{in.Path}, Flatten: &layer.Flatten{}})
		}
		parts = append(parts, part)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	n.Nodes = append(n.Nodes, Node{Name: name + ".join", In: parts, Concat: &layer.Concat{}})
	return name + ".join"
}

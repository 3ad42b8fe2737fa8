package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Kind names a known encoder of images.
type Kind string

// Kinds of encoders of images.
const (
	// NatureCNN is Mnih et al. 2015: convolutions of 32 8×8/4, 64 4×4/2 and 64 3×3/1.
	NatureCNN Kind = "nature_cnn"
	// Impala is the residual network of Espeholt et al. 2018: sections of 16, 32 and 32 channels with a convolution, a
	// pool and two residual blocks each, 15 convolutions in all.
	Impala Kind = "impala"
)

// Nodes returns the nodes of a kind that read an image, then dense layers of the hidden widths. Names begin with name;
// heads read the last node.
func (k Kind) Nodes(name, in string, hidden []int, f Activation) []Node {
	b := builder{f: f}
	last := in
	switch k {
	case NatureCNN:
		last = b.nature(name, in)
	case Impala:
		last = b.impala(name, in)
	}
	for i, width := range hidden {
		last = b.activation(b.add(Node{Name: fmt.Sprintf("%s.%d", name, i), In: []string{last}, Dense: &layer.Dense{Out: width, Gain: math.Sqrt2}}))
	}
	return b.nodes
}

// builder collects nodes.
type builder struct {
	nodes []Node
	f     Activation
}

func (b *builder) add(n Node) string {
	b.nodes = append(b.nodes, n)
	return n.Name
}

func (b *builder) activation(of string) string {
	return b.add(Node{Name: of + ".activation", In: []string{of}, Activation: &layer.Activation{Func: b.f}})
}

func (b *builder) conv(name, in string, out, kernel, stride, pad int) string {
	return b.add(Node{Name: name, In: []string{in}, Conv2D: &layer.Conv2D{
		Window: layer.Window{Kernel: kernel, Stride: stride, Pad: pad}, Out: out, Gain: math.Sqrt2}})
}

func (b *builder) nature(name, in string) string {
	for i, c := range [][3]int{{32, 8, 4}, {64, 4, 2}, {64, 3, 1}} {
		in = b.activation(b.conv(fmt.Sprintf("%s.conv.%d", name, i), in, c[0], c[1], c[2], 0))
	}
	return in
}

func (b *builder) impala(name, in string) string {
	for i, channels := range []int{16, 32, 32} {
		section := fmt.Sprintf("%s.section.%d", name, i)
		in = b.conv(section+".conv", in, channels, 3, 1, 1)
		in = b.add(Node{Name: section + ".pool", In: []string{in}, MaxPool: &layer.MaxPool{Window: layer.Window{Kernel: 3, Stride: 2, Pad: 1}}})
		for j := range 2 {
			block := fmt.Sprintf("%s.block.%d", section, j)
			x := b.activation(in)
			x = b.activation(b.conv(block+".conv.0", x, channels, 3, 1, 1))
			x = b.conv(block+".conv.1", x, channels, 3, 1, 1)
			in = b.add(Node{Name: block, In: []string{x, in}, Add: &layer.Add{}})
		}
	}
	return b.activation(in)
}

// Body is a network of given nodes. The policy's heads read the last node whose name begins with actor., the value's the
// last of critic.; where there is none, the last of all.
type Body struct {
	Inputs []Input
	Nodes  []Node
	Heads
}

// Network adds the heads.
func (b Body) Network() Network {
	n := Network{Format: Format, Inputs: b.Inputs, Nodes: slices.Clone(b.Nodes)}
	n.act(&b.Heads, b.last("actor"))
	n.value(&b.Heads, b.last("critic"))
	return n
}

// last returns the node that a part's head reads.
func (b *Body) last(part string) (name string) {
	found := false
	for i := range b.Nodes {
		if own := strings.HasPrefix(b.Nodes[i].Name, part+"."); own || !found {
			name, found = b.Nodes[i].Name, own
		}
	}
	return name
}

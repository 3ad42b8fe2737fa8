package export

import (
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// onnxLayer is a node of the network while it is written. Tensors have the shapes that the network gives them, images
// channels last.
type onnxLayer struct {
	*onnxGraph
	of      *policy.Node
	tensors map[string]component.Tensor // weights by name
	in      []string                    // the node's inputs, and their shapes
	shapes  [][]int
	out     string // the name to give its output
	at      int    // where its part of the state begins
	next    string // the part of the state that it leaves
}

// activations write functions. Operators have their default attributes.
var activations = map[layer.Func]func(l *onnxLayer, x string){
	layer.Tanh: func(l *onnxLayer, x string) { l.output("Tanh", x) },
	layer.ReLU: func(l *onnxLayer, x string) { l.output("Relu", x) },
	layer.ELU:  func(l *onnxLayer, x string) { l.output("Elu", x) },
	layer.GELU: func(l *onnxLayer, x string) { // opset 17 has no operator for it
		wide := l.op("Erf", "erf", l.op("Mul", "scaled", x, l.vector(1/math.Sqrt2)))
		l.output("Mul", x, l.op("Mul", "normal", l.op("Add", "sum", wide, l.vector(1)), l.vector(0.5)))
	},
	layer.SiLU: func(l *onnxLayer, x string) { l.output("Mul", x, l.op("Sigmoid", "sigmoid", x)) },
}

func (l *onnxLayer) write() error {
	op, err := l.of.Op()
	if err != nil {
		return err
	}
	switch op := op.(type) {
	case *layer.Dense:
		l.output("Gemm", l.flat(l.in[0], l.shapes[0]), l.weight("weight"), l.weight("bias"))
	case *layer.Activation:
		write, ok := activations[op.Func]
		if !ok {
			return fmt.Errorf("node %q: activation %q in an ONNX file is %w", l.of.Name, op.Func, policy.ErrUnsupported)
		}
		write(l, l.in[0])
	case *layer.Conv2D:
		l.image("Conv", &op.Window, l.kernels(), l.weight("bias"))
	case *layer.MaxPool:
		l.image("MaxPool", &op.Window)
	case *layer.Add:
		l.output("Sum", l.in...)
	case *layer.Concat:
		l.node("Concat", l.out, l.in, axis(-1))
	case *layer.Flatten:
		l.node("Flatten", l.out, l.in, axis(1))
	case *layer.LayerNorm: // along the last axis, with an epsilon of 1e-5, where nothing else is said
		l.output("LayerNormalization", l.in[0], l.weight("weight"), l.weight("bias"))
	case *layer.Append:
		l.append(op)
	case *layer.GRU:
		l.gru(op)
	case *layer.LSTM:
		l.lstm(op)
	default:
		return fmt.Errorf("node %q: %v in an ONNX file is %w", l.of.Name, op, policy.ErrUnsupported)
	}
	return nil
}

// output appends the node whose output is the layer's.
func (l *onnxLayer) output(op string, in ...string) { l.node(op, l.out, in) }

// weight appends a tensor of the node, and returns its name.
func (l *onnxLayer) weight(name string) string {
	name = l.of.Name + "." + name
	l.floats(name, l.tensors[name].Shape, l.tensors[name].Data)
	return name
}

// kernels appends the weight of a convolution, which is [outputs][channels][rows][columns] in ONNX.
func (l *onnxLayer) kernels() string {
	name := l.of.Name + ".weight"
	t := l.tensors[name]
	places, channels, outputs := t.Shape[0]*t.Shape[1], t.Shape[2], t.Shape[3]
	turned := make([]float32, 0, len(t.Data))
	for o := range outputs {
		for c := range channels {
			for place := range places {
				turned = append(turned, t.Data[(place*channels+c)*outputs+o])
			}
		}
	}
	l.floats(name, []int{outputs, channels, t.Shape[0], t.Shape[1]}, turned)
	return name
}

// image appends an operator of images, which have their channels first in ONNX.
func (l *onnxLayer) image(op string, w *layer.Window, weights ...string) {
	in := l.node("Transpose", l.out+".chw", l.in, attribute{"perm", []int{0, 3, 1, 2}})
	out := l.node(op, l.out+".out", append([]string{in}, weights...), attribute{"kernel_shape", []int{w.Kernel, w.Kernel}},
		attribute{"strides", []int{w.Stride, w.Stride}}, attribute{"pads", []int{w.Pad, w.Pad, w.Pad, w.Pad}})
	l.node("Transpose", l.out, []string{out}, attribute{"perm", []int{0, 2, 3, 1}})
}

// append adds constants to zeros after x.
func (l *onnxLayer) append(a *layer.Append) {
	before := layer.Elems(l.shapes[0])
	values := make([]float32, before+a.N)
	for i := range a.N {
		values[before+i] = float32(a.Init)
	}
	if !a.Fixed {
		copy(values[before:], l.tensors[l.of.Name+".value"].Data)
	}
	wide := l.node("Pad", l.out+".wide", []string{l.flat(l.in[0], l.shapes[0]), l.ints(0, 0, 0, a.N)})
	l.output("Add", wide, l.vector(values...))
}

// flat returns the name of rows of vectors for rows of a shape.
func (g *onnxGraph) flat(name string, shape []int) string {
	if len(shape) == 1 {
		return name
	}
	return g.node("Flatten", g.unique(name+".flat"), []string{name}, axis(1))
}

// declare appends an action's tensors to the inputs and outputs.
func (p *Policy) declare(g *onnxGraph, i int) {
	d := &p.Network.Policy[i]
	of := written(d)
	switch {
	case of.Continuous():
		g.value(graphOutput, ofAction(onnxAction, i), onnxFloat, of.Size())
		g.value(graphOutput, ofAction(onnxMean, i), onnxFloat, of.Size())
		g.value(graphOutput, ofAction(onnxLogStd, i), onnxFloat, of.Size())
		return
	case d.Categorical != nil:
		g.value(graphOutput, ofAction(onnxAction, i), onnxInt64)
	default:
		g.value(graphOutput, ofAction(onnxAction, i), onnxInt64, of.Size())
	}
	if p.masked(i) {
		g.value(graphInput, ofAction(onnxMask, i), onnxBool, of.Choices())
	}
	g.value(graphOutput, ofAction(onnxLogits, i), onnxFloat, of.Choices())
}

// head appends the parameters of an action's distribution, and the action.
func (p *Policy) head(g *onnxGraph, i int, params string) {
	d := &p.Network.Policy[i]
	if d.Gaussian != nil {
		g.box(d, i, params)
		return
	}
	logits := ofAction(onnxLogits, i)
	if d.Bernoulli != nil { // the logit 0 before each of the value 1
		single := g.node("Unsqueeze", logits+".single", []string{params, g.ints(2)})
		params = g.node("Flatten", logits+".all", []string{g.node("Pad", logits+".pairs", []string{single, g.ints(0, 0, 1, 0, 0, 0)})}, axis(1))
	}
	if p.masked(i) {
		illegal := g.vector(float32(math.Inf(-1)))
		g.node("Where", logits, []string{ofAction(onnxMask, i), params, illegal})
	} else {
		g.node("Identity", logits, []string{params})
	}
	g.choices(d, i, logits)
}

// choices appends a discrete action.
func (g *onnxGraph) choices(d *policy.Dist, i int, logits string) {
	action, best := ofAction(onnxAction, i), ""
	if d.Categorical != nil {
		best = g.node("ArgMax", action+".best", []string{logits}, axis(1), attribute{"keepdims", []int{0}})
	} else {
		var elements []string
		at := 0
		for e, n := range d.Counts() {
			part := g.columns(fmt.Sprintf("%s.logits.%d", action, e), logits, at, at+n)
			elements = append(elements, g.node("ArgMax", fmt.Sprintf("%s.%d", action, e), []string{part}, axis(1), attribute{"keepdims", []int{1}}))
			at += n
		}
		best = g.node("Concat", action+".best", elements, axis(1))
	}
	g.node("Add", action, []string{best, g.ints(int(d.Start))})
}

// columns appends the columns lo to hi of a matrix.
func (g *onnxGraph) columns(name, of string, lo, hi int) string {
	return g.node("Slice", name, []string{of, g.ints(lo), g.ints(hi), g.ints(1)})
}

// box appends a Box: its mean, brought within the bounds.
func (g *onnxGraph) box(d *policy.Dist, i int, params string) {
	n, b, action := d.Gaussian.N, d.Bounds, ofAction(onnxAction, i)
	x := g.columns(ofAction(onnxMean, i), params, 0, n)
	bounds := d.Gaussian.LogStdRange()
	g.limit(ofAction(onnxLogStd, i), g.columns(ofAction(onnxLogStd, i)+".free", params, n, 2*n), repeated(bounds.Min, n), repeated(bounds.Max, n))
	if d.Gaussian.Squash == head.Tanh {
		x = g.node("Tanh", action+".squashed", []string{x})
	}
	if d.Scaled() {
		half, middle := make([]float32, n), make([]float32, n)
		for e := range n {
			half[e] = (b.High[e] - b.Low[e]) / 2
			middle[e] = b.Low[e] + half[e]
		}
		x = g.node("Mul", action+".scaled", []string{x, g.vector(half...)})
		x = g.node("Add", action+".moved", []string{x, g.vector(middle...)})
	}
	g.limit(action, x, b.Low, b.High)
}

// limit appends nodes that clip columns to bounds.
func (g *onnxGraph) limit(name, of string, low, high []float32) {
	above := g.node("Max", name+".above", []string{of, g.vector(low...)})
	g.node("Min", name, []string{above, g.vector(high...)})
}

// repeated returns a vector of n equal elements.
func repeated(x float64, n int) []float32 { return slices.Repeat([]float32{float32(x)}, n) }

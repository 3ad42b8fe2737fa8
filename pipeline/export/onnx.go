package export

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Versions that are written: those of ONNX 1.12, which every runtime of the last years reads.
const (
	onnxIR    = 8
	onnxOpset = 17
)

// Fields of onnx.proto.
const (
	modelIR, modelProducer, modelGraph, modelOpset, modelMetadata   = 1, 2, 7, 8, 14
	graphNode, graphName, graphInitializer, graphInput, graphOutput = 1, 2, 5, 11, 12
	nodeInput, nodeOutput, nodeName, nodeOp, nodeAttribute          = 1, 2, 3, 4, 5
	attributeName, attributeInt, attributeType                      = 1, 3, 20
	tensorDims, tensorType, tensorName, tensorRaw                   = 1, 2, 8, 9
	valueName, valueType                                            = 1, 2
	typeTensor, typeElem, typeShape, shapeDim, dimValue, dimParam   = 1, 1, 2, 1, 1, 2
	entryKey, entryValue                                            = 1, 2
	opsetVersion                                                    = 2
	attributeTypeInt                                                = 2
)

// Element types of ONNX.
const (
	onnxFloat = 1
	onnxInt64 = 7
	onnxBool  = 9
)

// Names of the model's inputs and outputs.
const (
	onnxObs    = "obs"    // f32 [rows, …]
	onnxMask   = "mask"   // bool [rows, actions]; only where the environment masks actions
	onnxAction = "action" // i64 [rows]: the most probable legal action
	onnxLogits = "logits" // f32 [rows, actions], -inf for illegal ones
	onnxValue  = "value"  // f32 [rows]
)

// message is a protobuf message under construction.
type message []byte

func (m *message) bytes(field protowire.Number, b []byte) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), b)
}

func (m *message) text(field protowire.Number, s string) { m.bytes(field, []byte(s)) }

func (m *message) number(field protowire.Number, v uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), v)
}

// onnxGraph is a GraphProto under construction.
type onnxGraph struct{ message }

// node appends a node with integer attributes.
func (g *onnxGraph) node(op, out string, in []string, attributes ...attribute) {
	var n message
	for _, name := range in {
		n.text(nodeInput, name)
	}
	n.text(nodeOutput, out)
	n.text(nodeName, out)
	n.text(nodeOp, op)
	for _, a := range attributes {
		var m message
		m.text(attributeName, a.name)
		m.number(attributeInt, uint64(a.value))
		m.number(attributeType, attributeTypeInt)
		n.bytes(nodeAttribute, m)
	}
	g.bytes(graphNode, n)
}

type attribute struct {
	name  string
	value int64
}

// tensor appends a constant of little-endian elements.
func (g *onnxGraph) tensor(name string, elem uint64, shape []int, raw []byte) {
	var t message
	for _, n := range shape {
		t.number(tensorDims, uint64(n))
	}
	t.number(tensorType, elem)
	t.text(tensorName, name)
	t.bytes(tensorRaw, raw)
	g.bytes(graphInitializer, t)
}

func (g *onnxGraph) floats(name string, shape []int, data []float32) {
	var raw []byte
	for _, v := range data {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	g.tensor(name, onnxFloat, shape, raw)
}

// value appends an input or output of rows of a shape.
func (g *onnxGraph) value(field protowire.Number, name string, elem uint64, shape ...int) {
	var dims, d message
	d.text(dimParam, "rows")
	dims.bytes(shapeDim, d)
	for _, n := range shape {
		d = d[:0]
		d.number(dimValue, uint64(n))
		dims.bytes(shapeDim, d)
	}
	var tensor, typ, v message
	tensor.number(typeElem, elem)
	tensor.bytes(typeShape, dims)
	typ.bytes(typeTensor, tensor)
	v.text(valueName, name)
	v.bytes(valueType, typ)
	g.bytes(field, v)
}

func encodeONNX(p *Policy) ([]byte, error) {
	n, g := &p.Network, &onnxGraph{}
	g.text(graphName, "policy")
	actions := n.Actions()
	g.value(graphInput, onnxObs, onnxFloat, n.Inputs[0].Shape...)
	if p.Masked {
		g.value(graphInput, onnxMask, onnxBool, actions)
	}
	g.value(graphOutput, onnxAction, onnxInt64)
	g.value(graphOutput, onnxLogits, onnxFloat, actions)
	g.value(graphOutput, onnxValue, onnxFloat)

	tensors := p.tensors()
	for _, name := range slices.Sorted(maps.Keys(tensors)) {
		g.floats(name, tensors[name].Shape, tensors[name].Data)
	}
	names := map[string]string{n.Inputs[0].Path: p.preprocess(g)}
	for i := range n.Nodes {
		node := &n.Nodes[i]
		out := "node." + node.Name
		if err := g.layer(node, names[node.In[0]], out); err != nil {
			return nil, err
		}
		names[node.Name] = out
	}
	p.heads(g, names[n.Policy[0].From], names[n.Values[0].From])

	var m, opset message
	m.number(modelIR, onnxIR)
	m.text(modelProducer, "rlhost")
	m.bytes(modelGraph, g.message)
	opset.number(opsetVersion, onnxOpset)
	m.bytes(modelOpset, opset)
	for _, key := range slices.Sorted(maps.Keys(p.About)) {
		var e message
		e.text(entryKey, key)
		e.text(entryValue, p.About[key])
		m.bytes(modelMetadata, e)
	}
	return m, nil
}

// preprocess appends what makes a row of numbers of an observation, and returns its name.
func (p *Policy) preprocess(g *onnxGraph) string {
	g.node("Flatten", "obs.flat", []string{onnxObs}, attribute{"axis", 1})
	if !p.Network.NormalizeObs() {
		return "obs.flat"
	}
	g.floats("obs_least", nil, []float32{-policy.ObsClip})
	g.floats("obs_most", nil, []float32{policy.ObsClip})
	g.node("Sub", "obs.centred", []string{"obs.flat", meanTensor})
	g.node("Mul", "obs.scaled", []string{"obs.centred", scaleTensor})
	g.node("Clip", "obs.normal", []string{"obs.scaled", "obs_least", "obs_most"})
	return "obs.normal"
}

// activations are the operators of functions, with their default attributes.
var activations = map[layer.Func]string{layer.Tanh: "Tanh", layer.ReLU: "Relu", layer.ELU: "Elu"}

// layer appends a node of the network.
func (g *onnxGraph) layer(node *policy.Node, in, out string) error {
	op, err := node.Op()
	if err != nil {
		return err
	}
	switch op := op.(type) {
	case *layer.Dense:
		g.node("Gemm", out, []string{in, node.Name + ".weight", node.Name + ".bias"})
	case *layer.Activation:
		g.node(activations[op.Func], out, []string{in})
	default:
		return fmt.Errorf("node %q: %v in an ONNX file is %w", node.Name, op, policy.ErrUnsupported)
	}
	return nil
}

// heads appends the outputs.
func (p *Policy) heads(g *onnxGraph, logits, value string) {
	if p.Masked {
		g.floats("illegal", nil, []float32{float32(math.Inf(-1))})
		g.node("Where", onnxLogits, []string{onnxMask, logits, "illegal"})
	} else {
		g.node("Identity", onnxLogits, []string{logits})
	}
	g.node("ArgMax", onnxAction, []string{onnxLogits}, attribute{"axis", 1}, attribute{"keepdims", 0})
	g.tensor("value_axis", onnxInt64, []int{1}, binary.LittleEndian.AppendUint64(nil, 1))
	g.node("Squeeze", onnxValue, []string{value, "value_axis"})
}

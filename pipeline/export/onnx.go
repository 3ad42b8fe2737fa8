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

// Versions that are written: ONNX 1.12's, which every runtime of the last years reads.
const (
	onnxIR    = 8
	onnxOpset = 17
)

// Fields of onnx.proto.
const (
	modelIR, modelProducer, modelGraph, modelOpset, modelMetadata   = 1, 2, 7, 8, 14
	graphNode, graphName, graphInitializer, graphInput, graphOutput = 1, 2, 5, 11, 12
	nodeInput, nodeOutput, nodeName, nodeOp, nodeAttribute          = 1, 2, 3, 4, 5
	attributeName, attributeInt, attributeInts, attributeType       = 1, 3, 8, 20
	tensorDims, tensorType, tensorName, tensorRaw                   = 1, 2, 8, 9
	valueName, valueType                                            = 1, 2
	typeTensor, typeElem, typeShape, shapeDim, dimValue, dimParam   = 1, 1, 2, 1, 1, 2
	entryKey, entryValue                                            = 1, 2
	opsetVersion                                                    = 2
	attributeTypeInt, attributeTypeInts                             = 2, 7
)

// Element types of ONNX.
const (
	onnxFloat = 1
	onnxInt64 = 7
	onnxBool  = 9
)

// onnxTypes are the element types of observations.
var onnxTypes = map[string]uint64{"": onnxFloat, "f32": onnxFloat, "u8": 2, "i8": 3, "i16": 5, "i32": 6, "i64": onnxInt64, "bool": onnxBool, "f64": 11}

// Names of the model's outputs, of masks and of the state. Names of the second action end in /1, and so on. Observations have their paths.
const (
	onnxMask   = "mask"    // bool [rows, choices]; only where the environment says which choices are legal
	onnxAction = "action"  // the environment's action, the most probable: i64 [rows] of one Discrete, [rows, elements] of others, f32 of a Box
	onnxLogits = "logits"  // f32 [rows, choices] of a discrete action, -inf for illegal ones
	onnxMean   = "mean"    // f32 [rows, elements] of a Box, as its distribution has it
	onnxLogStd = "log_std" // likewise
	onnxValue  = "value"   // f32 [rows]

	// Of a network that keeps a state, f32 [rows, elements]: zero in an episode's first step; and the next step's.
	onnxState = "core_state"
	onnxNext  = "next_core_state"
)

// ofAction returns the name of an action's tensor.
func ofAction(name string, action int) string {
	if action == 0 {
		return name
	}
	return fmt.Sprintf("%s/%d", name, action)
}

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
type onnxGraph struct {
	message
	names int // that unique has made
}

// node appends a node with attributes, and returns the name of its output.
func (g *onnxGraph) node(op, out string, in []string, attributes ...attribute) string {
	var n message
	for _, name := range in {
		n.text(nodeInput, name)
	}
	n.text(nodeOutput, out)
	n.text(nodeName, out)
	n.text(nodeOp, op)
	for _, a := range attributes {
		n.bytes(nodeAttribute, a.message())
	}
	g.bytes(graphNode, n)
	return out
}

// attribute is a number, or a list of several.
type attribute struct {
	name   string
	values []int
}

func (a *attribute) message() (m message) {
	m.text(attributeName, a.name)
	if len(a.values) == 1 {
		m.number(attributeInt, uint64(a.values[0]))
		m.number(attributeType, attributeTypeInt)
		return m
	}
	for _, v := range a.values {
		m.number(attributeInts, uint64(v))
	}
	m.number(attributeType, attributeTypeInts)
	return m
}

func axis(n int) attribute { return attribute{"axis", []int{n}} }

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

// vector appends a constant of float32 and returns its name.
func (g *onnxGraph) vector(data ...float32) string {
	name := g.unique("constant")
	g.floats(name, []int{len(data)}, data)
	return name
}

// ints appends a constant of int64 and returns its name.
func (g *onnxGraph) ints(data ...int) string {
	var raw []byte
	for _, v := range data {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	name := g.unique("constant")
	g.tensor(name, onnxInt64, []int{len(data)}, raw)
	return name
}

// unique returns a new name.
func (g *onnxGraph) unique(prefix string) string {
	g.names++
	return fmt.Sprintf("%s.%d", prefix, g.names)
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
	shapes, err := n.Shapes()
	if err != nil {
		return nil, err
	}
	g.text(graphName, "policy")
	names, stat, has := map[string]string{}, 0, p.written()
	for i := range n.Inputs {
		in := onnxInput{onnxGraph: g, Input: &n.Inputs[i]}
		if elems := layer.Elems(in.Shape); in.Norm == policy.Running {
			in.mean, in.scale = p.Weights.ObsMean[stat:stat+elems], p.Weights.ObsScale[stat:stat+elems]
			stat += elems
		}
		if has(in.Path) {
			names[in.Path] = in.write()
		}
	}
	for i := range n.Policy {
		p.declare(g, i)
	}
	value := n.Values[0].From
	if has(value) {
		g.value(graphOutput, onnxValue, onnxFloat)
	}
	if kept := n.State(); kept > 0 {
		g.value(graphInput, onnxState, onnxFloat, kept)
		g.value(graphOutput, onnxNext, onnxFloat, kept)
	}

	tensors, at, next := p.tensors(), 0, []string(nil)
	for i := range n.Nodes {
		node := &n.Nodes[i]
		if !has(node.Name) {
			continue
		}
		l := onnxLayer{onnxGraph: g, of: node, tensors: tensors, out: "node." + node.Name, at: at}
		for _, in := range node.In {
			l.in, l.shapes = append(l.in, names[in]), append(l.shapes, shapes[in])
		}
		if err := l.write(); err != nil {
			return nil, err
		}
		names[node.Name] = l.out
		if core := node.Core(); core != nil {
			at, next = at+core.State(), append(next, l.next)
		}
	}
	if len(next) > 0 {
		g.node("Concat", onnxNext, next, axis(1))
	}
	for i := range n.Policy {
		p.head(g, i, g.flat(names[n.Policy[i].From], shapes[n.Policy[i].From]))
	}
	if has(value) {
		g.node("Squeeze", onnxValue, []string{g.flat(names[value], shapes[value]), g.ints(1)})
	}
	return p.file(g), nil
}

// file returns the ModelProto of a graph.
func (p *Policy) file(g *onnxGraph) []byte {
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
	return m
}

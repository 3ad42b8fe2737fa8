package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// onnxModel holds a model's input row shapes, its nodes in order and its constants.
type onnxModel struct {
	inputs    map[string][]int
	nodes     []onnxNode
	constants map[string]tensor
}

type onnxNode struct {
	op         string
	in         []string
	out        string
	attributes map[string][]int
}

// tensor is row-major. Numbers of all types are float64.
type tensor struct {
	shape []int
	data  []float64
}

// fields calls visit for each field of a message: its bytes, or its number.
func fields(b []byte, visit func(field protowire.Number, b []byte, v uint64) error) error {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return protowire.ParseError(n)
		}
		b = b[n:]
		var content []byte
		var number uint64
		switch kind {
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			number, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := visit(field, content, number); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func openONNX(file []byte) (model, error) {
	m, err := readONNX(file)
	if err != nil {
		return nil, err
	}
	return m.compute, nil
}

func readONNX(file []byte) (*onnxModel, error) {
	m := &onnxModel{inputs: map[string][]int{}, constants: map[string]tensor{}}
	err := fields(file, func(field protowire.Number, b []byte, _ uint64) error {
		if field != modelGraph {
			return nil
		}
		return fields(b, m.graphField)
	})
	if err != nil {
		return nil, err
	}
	if len(m.nodes) == 0 {
		return nil, errors.New("it has no nodes")
	}
	return m, nil
}

func (m *onnxModel) graphField(field protowire.Number, b []byte, _ uint64) error {
	switch field {
	case graphNode:
		n, err := nodeOf(b)
		m.nodes = append(m.nodes, n)
		return err
	case graphInitializer:
		name, constant, err := constantOf(b)
		m.constants[name] = constant
		return err
	case graphInput:
		name, shape, err := inputOf(b)
		m.inputs[name] = shape
		return err
	}
	return nil
}

// inputOf reads the name of a ValueInfoProto, and the shape of a row of it.
func inputOf(b []byte) (name string, shape []int, err error) {
	err = fields(b, func(field protowire.Number, content []byte, _ uint64) error {
		if field == valueName {
			name = string(content)
		}
		return nil
	})
	dims := [][]byte{b}
	for _, field := range []protowire.Number{valueType, typeTensor, typeShape, shapeDim} {
		var inner [][]byte
		for _, d := range dims {
			err = errors.Join(err, fields(d, func(f protowire.Number, content []byte, _ uint64) error {
				if f == field {
					inner = append(inner, content)
				}
				return nil
			}))
		}
		dims = inner
	}
	for _, d := range dims {
		err = errors.Join(err, fields(d, func(field protowire.Number, _ []byte, v uint64) error {
			if field == dimValue {
				shape = append(shape, int(v))
			}
			return nil
		}))
	}
	return name, shape, err
}

func nodeOf(b []byte) (n onnxNode, err error) {
	n.attributes = map[string][]int{}
	err = fields(b, func(field protowire.Number, b []byte, _ uint64) error {
		switch field {
		case nodeInput:
			n.in = append(n.in, string(b))
		case nodeOutput:
			n.out = string(b)
		case nodeOp:
			n.op = string(b)
		case nodeAttribute:
			name, values := "", []int(nil)
			err := fields(b, func(field protowire.Number, b []byte, v uint64) error {
				switch field {
				case attributeName:
					name = string(b)
				case attributeInt, attributeInts:
					values = append(values, int(v))
				}
				return nil
			})
			n.attributes[name] = values
			return err
		}
		return nil
	})
	return n, err
}

// constantOf reads a TensorProto.
func constantOf(b []byte) (name string, c tensor, err error) {
	elem, raw := uint64(0), []byte(nil)
	err = fields(b, func(field protowire.Number, b []byte, v uint64) error {
		switch field {
		case tensorDims:
			c.shape = append(c.shape, int(v))
		case tensorType:
			elem = v
		case tensorName:
			name = string(b)
		case tensorRaw:
			raw = b
		}
		return nil
	})
	switch {
	case elem == onnxFloat:
		for ; len(raw) >= 4; raw = raw[4:] {
			c.data = append(c.data, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		}
	case elem == onnxInt64:
		for ; len(raw) >= 8; raw = raw[8:] {
			c.data = append(c.data, float64(int64(binary.LittleEndian.Uint64(raw))))
		}
	}
	if err == nil && (elems(c.shape) != len(c.data)) {
		err = fmt.Errorf("constant %s of shape %v has %d elements", name, c.shape, len(c.data))
	}
	return name, c, err
}

// elems returns the number of elements of a shape, 0 for an invalid or too large one.
func elems(shape []int) int {
	n := 1
	for _, d := range shape {
		if d < 1 || d > math.MaxInt32/n {
			return 0
		}
		n *= d
	}
	return n
}

// compute runs all nodes, as ONNX's operators are specified.
func (m *onnxModel) compute(s *Samples) (*outputs, error) {
	known, at, acts := map[string]tensor{}, 0, false
	for i := range s.inputs {
		in := &s.inputs[i]
		shape, there := m.inputs[in.Path]
		n := in.Frames() * layer.Elems(in.Shape)
		if !there {
			at, acts = at+n, true
			continue
		}
		if elems(shape) != n {
			return nil, fmt.Errorf("%s has %d elements, in the file the shape %v", in.Path, n, shape)
		}
		x := tensor{shape: append([]int{s.Rows}, shape...)}
		for row := range s.Rows {
			x.data = append(x.data, widen(s.Obs[row*s.width+at:row*s.width+at+n])...)
		}
		known[in.Path], at = x, at+n
	}
	if shape := m.inputs[onnxState]; s.kept > 0 {
		if elems(shape) != s.kept {
			return nil, fmt.Errorf("%d elements of state, in the file the shape %v", s.kept, shape)
		}
		known[onnxState] = tensor{[]int{s.Rows, s.kept}, widen(s.State)}
	}
	for name, c := range m.constants {
		known[name] = c
	}
	for k, a := range s.Actions {
		mask := tensor{shape: []int{s.Rows, len(a.Mask) / s.Rows}}
		for _, legal := range a.Mask {
			mask.data = append(mask.data, float64(legal))
		}
		known[ofAction(onnxMask, k)] = mask
	}
	for _, n := range m.nodes {
		in := make([]tensor, len(n.in))
		for i, name := range n.in {
			if in[i] = known[name]; in[i].data == nil {
				return nil, fmt.Errorf("node %s reads %s, which is not known", n.out, name)
			}
		}
		out, err := n.apply(in)
		if err != nil {
			return nil, fmt.Errorf("node %s: %w", n.out, err)
		}
		known[n.out] = out
	}
	out := &outputs{values: known[onnxValue].data, state: known[onnxNext].data, acts: acts}
	for k, a := range s.Actions {
		params := known[ofAction(onnxLogits, k)].data
		if a.of.Continuous() {
			params = beside(known[ofAction(onnxMean, k)], known[ofAction(onnxLogStd, k)], a.of.Size())
		}
		out.params, out.actions = append(out.params, params), append(out.actions, known[ofAction(onnxAction, k)].data)
	}
	return out, nil
}

// beside returns rows of n columns of each of two matrices.
func beside(a, b tensor, n int) (rows []float64) {
	if len(a.data) != len(b.data) {
		return nil
	}
	for at := 0; at+n <= len(a.data); at += n {
		rows = append(append(rows, a.data[at:at+n]...), b.data[at:at+n]...)
	}
	return rows
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

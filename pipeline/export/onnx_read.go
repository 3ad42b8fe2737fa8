package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// onnxModel is what is read of a model: its nodes in order and its constants.
type onnxModel struct {
	nodes     []onnxNode
	constants map[string]matrix
}

type onnxNode struct {
	op  string
	in  []string
	out string
}

// matrix has rows of equal length. A constant of one axis is one row.
type matrix struct {
	cols int
	data []float64
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
	m := &onnxModel{constants: map[string]matrix{}}
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
	return m.compute, nil
}

func (m *onnxModel) graphField(field protowire.Number, b []byte, _ uint64) error {
	switch field {
	case graphNode:
		var n onnxNode
		err := fields(b, func(field protowire.Number, b []byte, _ uint64) error {
			switch field {
			case nodeInput:
				n.in = append(n.in, string(b))
			case nodeOutput:
				n.out = string(b)
			case nodeOp:
				n.op = string(b)
			}
			return nil
		})
		m.nodes = append(m.nodes, n)
		return err
	case graphInitializer:
		name, constant, err := constantOf(b)
		m.constants[name] = constant
		return err
	}
	return nil
}

// constantOf reads a TensorProto of float32; one of another type has no elements.
func constantOf(b []byte) (name string, c matrix, err error) {
	c.cols = 1
	elem, raw := uint64(0), []byte(nil)
	err = fields(b, func(field protowire.Number, b []byte, v uint64) error {
		switch field {
		case tensorDims:
			c.cols = int(v) // the last one stays
		case tensorType:
			elem = v
		case tensorName:
			name = string(b)
		case tensorRaw:
			raw = b
		}
		return nil
	})
	if elem == onnxFloat {
		for ; len(raw) >= 4; raw = raw[4:] {
			c.data = append(c.data, float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		}
	}
	return name, c, err
}

// compute runs the nodes up to the unmasked logits and the value, as ONNX's operators are specified.
func (m *onnxModel) compute(obs []float32, rows int) (logits, values []float64, err error) {
	known := map[string]matrix{onnxObs: {len(obs) / rows, widen(obs)}}
	for name, c := range m.constants {
		known[name] = c
	}
	for _, n := range m.nodes {
		in := make([]matrix, len(n.in))
		for i, name := range n.in {
			in[i] = known[name]
			if in[i].data == nil && name != onnxMask && name != "value_axis" {
				return nil, nil, fmt.Errorf("node %s reads %s, which is not known", n.out, name)
			}
		}
		switch n.op {
		case "ArgMax":
			continue
		case "Where":
			n.op, in = "Identity", in[1:] // masks are applied by Compare
		}
		out, err := apply(n.op, in)
		if err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", n.out, err)
		}
		known[n.out] = out
	}
	return slices.Clone(known[onnxLogits].data), known[onnxValue].data, nil
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// operator computes a node of inputs whose shapes fit.
type operator struct {
	fits func(in []matrix) bool
	run  func(in []matrix) matrix
}

var operators = map[string]operator{
	"Flatten":  {always, first},
	"Identity": {always, first},
	"Squeeze":  {always, first},
	"Sub": {perColumn, func(in []matrix) matrix {
		return each(in[0], func(x float64, col int) float64 { return x - in[1].data[col] })
	}},
	"Mul": {perColumn, func(in []matrix) matrix {
		return each(in[0], func(x float64, col int) float64 { return x * in[1].data[col] })
	}},
	"Clip": {limits, func(in []matrix) matrix {
		return each(in[0], func(x float64, _ int) float64 { return max(in[1].data[0], min(in[2].data[0], x)) })
	}},
	"Tanh": {always, func(in []matrix) matrix { return each(in[0], func(x float64, _ int) float64 { return math.Tanh(x) }) }},
	"Relu": {always, func(in []matrix) matrix { return each(in[0], func(x float64, _ int) float64 { return max(x, 0) }) }},
	"Elu": {always, func(in []matrix) matrix {
		return each(in[0], func(x float64, _ int) float64 { return max(x, 0) + math.Expm1(min(x, 0)) })
	}},
	"Gemm": {product, gemm},
}

func first(in []matrix) matrix { return in[0] }

func always([]matrix) bool { return true }

func perColumn(in []matrix) bool { return len(in) == 2 && len(in[1].data) == in[0].cols }

func limits(in []matrix) bool { return len(in) == 3 && len(in[1].data) == 1 && len(in[2].data) == 1 }

func product(in []matrix) bool {
	return len(in) == 3 && len(in[1].data) == in[0].cols*in[1].cols && len(in[2].data) == in[1].cols
}

// apply checks what operators take for granted.
func apply(op string, in []matrix) (matrix, error) {
	o, ok := operators[op]
	if !ok {
		return matrix{}, fmt.Errorf("operator %s is not known", op)
	}
	if len(in) == 0 || in[0].cols < 1 || len(in[0].data)%in[0].cols != 0 || !o.fits(in) {
		return matrix{}, fmt.Errorf("the inputs of %s do not fit", op)
	}
	return o.run(in), nil
}

func each(in matrix, f func(x float64, col int) float64) matrix {
	out := matrix{in.cols, make([]float64, len(in.data))}
	for i, x := range in.data {
		out.data[i] = f(x, i%in.cols)
	}
	return out
}

// gemm is x·weight + bias.
func gemm(in []matrix) matrix {
	x, weight, bias := in[0], in[1], in[2]
	rows := len(x.data) / x.cols
	out := matrix{weight.cols, make([]float64, rows*weight.cols)}
	for r := range rows {
		y := out.data[r*weight.cols : (r+1)*weight.cols]
		copy(y, bias.data)
		for i, v := range x.data[r*x.cols : (r+1)*x.cols] {
			for j, w := range weight.data[i*weight.cols:][:weight.cols] {
				y[j] += v * w
			}
		}
	}
	return out
}

package export

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// operators compute nodes of inputs, as ONNX specifies them, as far as files of this package have them. Nodes that do not fit are errUnfit.
var operators = map[string]func(n *onnxNode, in []tensor) (tensor, error){
	"Add":                each(func(x, y float64) float64 { return x + y }),
	"ArgMax":             argMax,
	"Cast":               function(func(x float64) float64 { return x }), // to float32; the values are float32 already
	"Clip":               clip,
	"Concat":             concat,
	"Conv":               conv,
	"Elu":                function(func(x float64) float64 { return max(x, 0) + math.Expm1(min(x, 0)) }),
	"Erf":                function(math.Erf),
	"Equal":              each(equal),
	"Flatten":            flatten,
	"Gather":             gather,
	"Gemm":               gemm,
	"Identity":           function(func(x float64) float64 { return x }),
	"LayerNormalization": layerNorm,
	"Max":                each(func(x, y float64) float64 { return max(x, y) }),
	"MaxPool":            maxPool,
	"Min":                each(func(x, y float64) float64 { return min(x, y) }),
	"Mul":                each(func(x, y float64) float64 { return x * y }),
	"Pad":                pad,
	"Reshape":            reshape,
	"Relu":               function(func(x float64) float64 { return max(x, 0) }),
	"Sigmoid":            function(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
	"Slice":              columns,
	"Squeeze":            squeeze,
	"Sub":                each(func(x, y float64) float64 { return x - y }),
	"Sum":                sum,
	"Tanh":               function(math.Tanh),
	"Transpose":          transpose,
	"Unsqueeze":          unsqueeze,
	"Where":              where,
}

var errUnfit = errors.New("its inputs or attributes do not fit")

func (n *onnxNode) apply(in []tensor) (tensor, error) {
	op, ok := operators[n.op]
	if !ok {
		return tensor{}, fmt.Errorf("operator %q is not known", n.op)
	}
	if len(in) == 0 {
		return tensor{}, errUnfit
	}
	return op(n, in)
}

// number returns an attribute of one number.
func (n *onnxNode) number(name string, fallback int) int {
	if v := n.attributes[name]; len(v) == 1 {
		return v[0]
	}
	return fallback
}

// function is an operator of single elements.
func function(f func(x float64) float64) func(*onnxNode, []tensor) (tensor, error) {
	return func(_ *onnxNode, in []tensor) (tensor, error) {
		out := tensor{in[0].shape, make([]float64, len(in[0].data))}
		for i, x := range in[0].data {
			out.data[i] = f(x)
		}
		return out, nil
	}
}

// each is an operator of an element and the one of a constant that belongs to it, which has fewer axes.
func each(f func(x, y float64) float64) func(*onnxNode, []tensor) (tensor, error) {
	return func(_ *onnxNode, in []tensor) (tensor, error) {
		if len(in) != 2 || !trails(in[0].shape, in[1].shape) {
			return tensor{}, errUnfit
		}
		out, c := tensor{in[0].shape, make([]float64, len(in[0].data))}, in[1].data
		for i, x := range in[0].data {
			out.data[i] = f(x, c[i%len(c)])
		}
		return out, nil
	}
}

func equal(x, y float64) float64 {
	if x == y {
		return 1
	}
	return 0
}

// gather picks columns of a matrix.
func gather(n *onnxNode, in []tensor) (tensor, error) {
	rows, cols, err := matrix(in[0])
	if err != nil || len(in) != 2 || n.number("axis", 0) != 1 {
		return tensor{}, errUnfit
	}
	out := tensor{shape: []int{rows, len(in[1].data)}}
	for r := range rows {
		for _, at := range in[1].data {
			if at < 0 || at >= float64(cols) {
				return tensor{}, errUnfit
			}
			out.data = append(out.data, in[0].data[r*cols+int(at)])
		}
	}
	return out, nil
}

// reshape leaves the rows.
func reshape(_ *onnxNode, in []tensor) (tensor, error) {
	if len(in) != 2 || len(in[0].shape) == 0 || len(in[1].data) < 2 || in[1].data[0] != 0 {
		return tensor{}, errUnfit
	}
	out := tensor{shape: []int{in[0].shape[0]}, data: in[0].data}
	for _, n := range in[1].data[1:] {
		out.shape = append(out.shape, int(n))
	}
	if elems(out.shape) != len(out.data) {
		return tensor{}, errUnfit
	}
	return out, nil
}

// trails reports whether the last axes of a shape equal a constant's. A constant of one element fits all.
func trails(shape, constant []int) bool {
	return elems(constant) == 1 || len(constant) <= len(shape) && slices.Equal(shape[len(shape)-len(constant):], constant)
}

func sum(_ *onnxNode, in []tensor) (tensor, error) {
	out := tensor{in[0].shape, slices.Clone(in[0].data)}
	for _, more := range in[1:] {
		if !slices.Equal(more.shape, out.shape) {
			return tensor{}, errUnfit
		}
		for i, x := range more.data {
			out.data[i] += x
		}
	}
	return out, nil
}

func clip(_ *onnxNode, in []tensor) (tensor, error) {
	if len(in) != 3 || len(in[1].data) != 1 || len(in[2].data) != 1 {
		return tensor{}, errUnfit
	}
	return function(func(x float64) float64 { return max(in[1].data[0], min(in[2].data[0], x)) })(nil, in)
}

func where(_ *onnxNode, in []tensor) (tensor, error) {
	if len(in) != 3 || !slices.Equal(in[0].shape, in[1].shape) || len(in[2].data) != 1 {
		return tensor{}, errUnfit
	}
	out := tensor{in[1].shape, slices.Clone(in[1].data)}
	for i, keep := range in[0].data {
		if keep == 0 {
			out.data[i] = in[2].data[0]
		}
	}
	return out, nil
}

// matrix returns rows and columns of a tensor of two axes.
func matrix(t tensor) (rows, cols int, err error) {
	if len(t.shape) != 2 {
		return 0, 0, errUnfit
	}
	return t.shape[0], t.shape[1], nil
}

// gemm is x·weight + bias.
func gemm(_ *onnxNode, in []tensor) (tensor, error) {
	if len(in) != 3 {
		return tensor{}, errUnfit
	}
	rows, depth, err := matrix(in[0])
	if err != nil {
		return tensor{}, err
	}
	deep, cols, err := matrix(in[1])
	if err != nil || deep != depth || !slices.Equal(in[2].shape, []int{cols}) {
		return tensor{}, errUnfit
	}
	out := tensor{[]int{rows, cols}, make([]float64, rows*cols)}
	for r := range rows {
		y := out.data[r*cols : (r+1)*cols]
		copy(y, in[2].data)
		for i, x := range in[0].data[r*depth : (r+1)*depth] {
			for j, w := range in[1].data[i*cols : (i+1)*cols] {
				y[j] += x * w
			}
		}
	}
	return out, nil
}

func flatten(n *onnxNode, in []tensor) (tensor, error) {
	if len(in[0].shape) < 2 || n.number("axis", 1) != 1 {
		return tensor{}, errUnfit
	}
	return tensor{[]int{in[0].shape[0], elems(in[0].shape[1:])}, in[0].data}, nil
}

// place returns the axis that the second input names, from 1 to most.
func place(in []tensor, most int) (int, error) {
	if len(in) != 2 || len(in[1].data) != 1 || in[1].data[0] < 1 || in[1].data[0] > float64(most) {
		return 0, errUnfit
	}
	return int(in[1].data[0]), nil
}

func squeeze(_ *onnxNode, in []tensor) (tensor, error) {
	at, err := place(in, len(in[0].shape)-1)
	if err != nil || in[0].shape[at] != 1 {
		return tensor{}, errUnfit
	}
	return tensor{slices.Delete(slices.Clone(in[0].shape), at, at+1), in[0].data}, nil
}

func unsqueeze(_ *onnxNode, in []tensor) (tensor, error) {
	at, err := place(in, len(in[0].shape))
	if err != nil {
		return tensor{}, err
	}
	return tensor{slices.Insert(slices.Clone(in[0].shape), at, 1), in[0].data}, nil
}

// pad adds zeros before and after the elements of the last axis.
func pad(_ *onnxNode, in []tensor) (tensor, error) {
	axes := len(in[0].shape)
	if len(in) != 2 || axes == 0 || len(in[1].data) != 2*axes {
		return tensor{}, errUnfit
	}
	for i, n := range in[1].data {
		if n < 0 || n > 1<<16 || n > 0 && i%axes != axes-1 {
			return tensor{}, errUnfit
		}
	}
	before, after, width := int(in[1].data[axes-1]), int(in[1].data[2*axes-1]), in[0].shape[axes-1]
	out := tensor{shape: slices.Clone(in[0].shape)}
	out.shape[axes-1] += before + after
	for at := 0; at < len(in[0].data); at += width {
		out.data = append(append(out.data, make([]float64, before)...), in[0].data[at:at+width]...)
		out.data = append(out.data, make([]float64, after)...)
	}
	return out, nil
}

// columns is Slice along the axis 1 of a matrix.
func columns(_ *onnxNode, in []tensor) (tensor, error) {
	rows, cols, err := matrix(in[0])
	if err != nil || len(in) != 4 || len(in[1].data) != 1 || len(in[2].data) != 1 || len(in[3].data) != 1 || in[3].data[0] != 1 {
		return tensor{}, errUnfit
	}
	lo, hi := in[1].data[0], in[2].data[0]
	if !(lo >= 0 && lo < hi && hi <= float64(cols)) {
		return tensor{}, errUnfit
	}
	out := tensor{shape: []int{rows, int(hi) - int(lo)}}
	for r := range rows {
		out.data = append(out.data, in[0].data[r*cols+int(lo):r*cols+int(hi)]...)
	}
	return out, nil
}

// concat puts inputs side by side along the last axis.
func concat(n *onnxNode, in []tensor) (tensor, error) {
	shape := slices.Clone(in[0].shape)
	last := len(shape) - 1
	if axis := n.number("axis", 0); last < 0 || axis != -1 && axis != last {
		return tensor{}, errUnfit
	}
	for _, t := range in[1:] {
		if len(t.shape) != len(shape) || !slices.Equal(t.shape[:last], shape[:last]) {
			return tensor{}, errUnfit
		}
		shape[last] += t.shape[last]
	}
	out := tensor{shape: shape}
	for r := range elems(shape[:last]) {
		for _, t := range in {
			out.data = append(out.data, t.data[r*t.shape[last]:(r+1)*t.shape[last]]...)
		}
	}
	return out, nil
}

// argMax is the place of the first of the largest elements of each row of a matrix.
func argMax(n *onnxNode, in []tensor) (tensor, error) {
	rows, cols, err := matrix(in[0])
	if err != nil || n.number("axis", 0) != 1 {
		return tensor{}, errUnfit
	}
	out := tensor{shape: []int{rows, 1}}
	if n.number("keepdims", 1) == 0 {
		out.shape = out.shape[:1]
	}
	for r := range rows {
		best, row := 0, in[0].data[r*cols:(r+1)*cols]
		for i, x := range row {
			if x > row[best] {
				best = i
			}
		}
		out.data = append(out.data, float64(best))
	}
	return out, nil
}

func transpose(n *onnxNode, in []tensor) (tensor, error) {
	perm, axes := n.attributes["perm"], len(in[0].shape)
	if axes < 1 || len(perm) != axes {
		return tensor{}, errUnfit
	}
	shape, strides := make([]int, axes), make([]int, axes)
	for i, axis := range perm {
		if axis < 0 || axis >= axes || slices.Contains(perm[:i], axis) {
			return tensor{}, errUnfit
		}
		shape[i], strides[i] = in[0].shape[axis], elems(in[0].shape[axis+1:])
	}
	out := tensor{shape: shape, data: make([]float64, 0, len(in[0].data))}
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == axes {
			out.data = append(out.data, in[0].data[at])
			return
		}
		for i := range shape[axis] {
			walk(axis+1, at+i*strides[axis])
		}
	}
	walk(0, 0)
	return out, nil
}

func layerNorm(n *onnxNode, in []tensor) (tensor, error) {
	axes := len(in[0].shape)
	if len(in) != 3 || axes < 2 || n.number("axis", -1) != -1 {
		return tensor{}, errUnfit
	}
	width := in[0].shape[axes-1]
	if len(in[1].data) != width || len(in[2].data) != width {
		return tensor{}, errUnfit
	}
	out := tensor{in[0].shape, make([]float64, len(in[0].data))}
	for at := 0; at < len(out.data); at += width {
		mean, square := 0.0, 0.0
		for _, x := range in[0].data[at : at+width] {
			mean += x / float64(width)
		}
		for _, x := range in[0].data[at : at+width] {
			square += (x - mean) * (x - mean) / float64(width)
		}
		for i, x := range in[0].data[at : at+width] {
			out.data[at+i] = (x-mean)/math.Sqrt(square+1e-5)*in[1].data[i] + in[2].data[i]
		}
	}
	return out, nil
}

// sliding is a window that slides over images [rows][channels][height][width].
type sliding struct {
	rows, channels, h, w int
	kernel, stride, pad  int
	outH, outW           int
}

func (n *onnxNode) sliding(in []tensor) (s sliding, err error) {
	shape, kernel, strides, pads := in[0].shape, n.attributes["kernel_shape"], n.attributes["strides"], n.attributes["pads"]
	if len(shape) != 4 || len(kernel) != 2 || len(strides) != 2 || len(pads) != 4 {
		return s, errUnfit
	}
	s = sliding{rows: shape[0], channels: shape[1], h: shape[2], w: shape[3], kernel: kernel[0], stride: strides[0], pad: pads[0]}
	same := !slices.ContainsFunc(slices.Concat([]int{kernel[1] - s.kernel, strides[1] - s.stride}), func(d int) bool { return d != 0 })
	if !same || !slices.Equal(pads, []int{s.pad, s.pad, s.pad, s.pad}) || s.kernel < 1 || s.stride < 1 || s.pad < 0 || s.pad >= s.kernel ||
		s.kernel > min(s.h, s.w)+2*s.pad || s.kernel > 1<<10 {
		return s, errUnfit
	}
	s.outH, s.outW = (s.h+2*s.pad-s.kernel)/s.stride+1, (s.w+2*s.pad-s.kernel)/s.stride+1
	return s, nil
}

// under visits the elements of channel c of row r that lie under the window at y and x: where they lie, and their place in
// the window.
func (s *sliding) under(r, c, y, x int, visit func(at, place int)) {
	for i := range s.kernel {
		for j := range s.kernel {
			py, px := y*s.stride-s.pad+i, x*s.stride-s.pad+j
			if py >= 0 && py < s.h && px >= 0 && px < s.w {
				visit(((r*s.channels+c)*s.h+py)*s.w+px, i*s.kernel+j)
			}
		}
	}
}

func conv(n *onnxNode, in []tensor) (tensor, error) {
	s, err := n.sliding(in)
	if err != nil || len(in) != 3 || len(in[1].shape) != 4 {
		return tensor{}, errUnfit
	}
	outputs, area := in[1].shape[0], s.kernel*s.kernel
	if !slices.Equal(in[1].shape[1:], []int{s.channels, s.kernel, s.kernel}) || len(in[2].data) != outputs {
		return tensor{}, errUnfit
	}
	out := tensor{shape: []int{s.rows, outputs, s.outH, s.outW}}
	patch := make([]float64, s.channels*area)
	out.data = make([]float64, elems(out.shape))
	for r := range s.rows {
		for pixel := range s.outH * s.outW {
			clear(patch)
			for c := range s.channels {
				s.under(r, c, pixel/s.outW, pixel%s.outW, func(at, place int) { patch[c*area+place] = in[0].data[at] })
			}
			for o := range outputs {
				y := in[2].data[o]
				for i, w := range in[1].data[o*len(patch) : (o+1)*len(patch)] {
					y += patch[i] * w
				}
				out.data[(r*outputs+o)*s.outH*s.outW+pixel] = y
			}
		}
	}
	return out, nil
}

func maxPool(n *onnxNode, in []tensor) (tensor, error) {
	s, err := n.sliding(in)
	if err != nil {
		return tensor{}, err
	}
	out := tensor{shape: []int{s.rows, s.channels, s.outH, s.outW}}
	for plane := range s.rows * s.channels {
		for pixel := range s.outH * s.outW {
			most := math.Inf(-1)
			s.under(plane/s.channels, plane%s.channels, pixel/s.outW, pixel%s.outW, func(at, _ int) { most = max(most, in[0].data[at]) })
			out.data = append(out.data, most)
		}
	}
	return out, nil
}

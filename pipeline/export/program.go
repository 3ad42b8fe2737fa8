package export

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/head"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// Operations of programs, as interpreter/policy.c has them.
const (
	opEnd uint32 = iota
	opEnter
	opOneHot
	opDense
	opActivation
	opConv
	opMaxPool
	opAdd
	opCopy
	opLayerNorm
	opGRU
	opLSTM
	opChoose
	opBox
)

// programFuncs are the numbers of activations in programs.
var programFuncs = map[layer.Func]uint32{layer.Tanh: 0, layer.ReLU: 1, layer.ELU: 2, layer.GELU: 3, layer.SiLU: 4}

// programNorms are the numbers of what happens to an input.
var programNorms = map[policy.Norm]uint32{"": 0, policy.Scaled: 1, policy.Running: 2}

// Kinds of elements that a program's head has a place and a count of; then the words of the head that are none.
const (
	programObs = iota
	programMask
	programActions
	programState
	programParams
	programKinds
)

// Further words of a program's head.
const (
	programValue   = 2*programKinds + iota // place of the value, 0 without one
	programActing                          // instructions of the actions
	programValuing                         // the further ones of the value
	programHead                            // how many words there are
)

// program is a policy as interpreter/policy.c computes it. Places count words from the program's first one. The tensors follow the head, and
// the image of numbers and instructions follows them.
type program struct {
	*Policy
	head    [programHead]uint32
	room    uint32   // words of the head and of the tensors
	imageAt uint32   // where the image begins: room, once that is known
	image   []uint32 // numbers, then instructions
	code    []uint32 // instructions so far
	shapes  map[string][]int
	places  map[string]uint32 // of inputs and nodes by name
	state   uint32            // place of the next node's state
	wanted  func(name string) bool
}

// newProgram translates a valid policy. policy.ErrUnsupported names a node that programs have no operation for.
func newProgram(p *Policy) (*program, error) {
	var x *program
	for at := uint32(0); x == nil || x.imageAt != x.room; at = x.room { // the second time the size of the tensors is known
		x = &program{Policy: p, imageAt: at, places: map[string]uint32{}, room: (programHead + 3) / 4 * 4, wanted: p.written()}
		if err := x.translate(); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *program) translate() (err error) {
	if x.shapes, err = x.Network.Shapes(); err != nil {
		return err
	}
	wanted := x.wanted
	x.layout()
	acting := x.Network.Acting()
	if x.Network.State() > 0 { // a state needs all its nodes in each step
		acting = map[string]bool{}
		for i := range x.Network.Nodes {
			acting[x.Network.Nodes[i].Name] = wanted(x.Network.Nodes[i].Name)
		}
		for i := range x.Network.Inputs {
			acting[x.Network.Inputs[i].Path] = wanted(x.Network.Inputs[i].Path)
		}
	}
	if err := x.compute(func(name string) bool { return acting[name] }); err != nil {
		return err
	}
	if err := x.heads(); err != nil {
		return err
	}
	x.head[programActing] = x.end()
	value := x.Network.Values[0].From
	if !wanted(value) {
		return nil
	}
	if err := x.compute(func(name string) bool { return wanted(name) && !acting[name] }); err != nil {
		return err
	}
	x.head[programValue], x.head[programValuing] = x.places[value], x.end()
	return nil
}

// layout gives what the head names its places.
func (x *program) layout() {
	obs, actions, mask, params := 0, 0, 0, 0
	for i := range x.Network.Inputs {
		if in := &x.Network.Inputs[i]; x.wanted(in.Path) {
			obs += in.Frames() * layer.Elems(in.Shape)
		}
	}
	for i := range x.Network.Policy {
		of := written(&x.Network.Policy[i])
		actions, params = actions+of.Size(), params+of.Elems()
		if !of.Continuous() {
			mask += of.Choices()
		}
	}
	legal := slices.Repeat([]uint32{0x01010101}, (mask+3)/4)
	x.kind(programMask, x.put(legal...), mask)
	for kind, n := range map[int]int{programObs: obs, programActions: actions, programState: x.Network.State(), programParams: params} {
		x.head[2*kind+1] = uint32(n)
	}
	for _, kind := range []int{programObs, programActions, programState, programParams} {
		x.kind(kind, x.tensor(int(x.head[2*kind+1])), int(x.head[2*kind+1]))
	}
	x.state = x.head[2*programState]
}

func (x *program) kind(kind int, place uint32, n int) {
	x.head[2*kind], x.head[2*kind+1] = place, uint32(n)
}

// tensor returns the place of a new tensor, which begins at 16 bytes.
func (x *program) tensor(elems int) uint32 {
	at := x.room
	x.room += uint32(elems+3) / 4 * 4
	return at
}

// put appends words to the image, and returns their place.
func (x *program) put(words ...uint32) uint32 {
	at := x.imageAt + uint32(len(x.image))
	x.image = append(x.image, words...)
	for len(x.image)%4 != 0 {
		x.image = append(x.image, 0)
	}
	return at
}

func (x *program) floats(numbers []float32) uint32 {
	words := make([]uint32, len(numbers))
	for i, v := range numbers {
		words[i] = math.Float32bits(v)
	}
	return x.put(words...)
}

func (x *program) ints(numbers []int) uint32 {
	words := make([]uint32, len(numbers))
	for i, v := range numbers {
		words[i] = uint32(v)
	}
	return x.put(words...)
}

// op appends an instruction.
func (x *program) op(op uint32, operands ...uint32) {
	x.code = append(append(x.code, op, uint32(len(operands))), operands...)
}

// end ends the instructions so far, and returns where they begin.
func (x *program) end() uint32 {
	at := x.put(append(x.code, opEnd)...)
	x.code = nil
	return at
}

// compute appends the inputs and nodes that are wanted.
func (x *program) compute(wanted func(name string) bool) error {
	from, stat := uint32(0), 0
	for i := range x.Network.Inputs {
		in := &x.Network.Inputs[i]
		if wanted(in.Path) {
			x.places[in.Path] = x.tensor(layer.Elems(in.Entered()))
			x.enter(in, from, stat)
		}
		if x.wanted(in.Path) {
			from += uint32(in.Frames() * layer.Elems(in.Shape))
		}
		if in.Norm == policy.Running {
			stat += layer.Elems(in.Shape)
		}
	}
	params := x.Network.Params()
	for i := range x.Network.Nodes {
		node := &x.Network.Nodes[i]
		op, err := node.Op()
		if err != nil {
			return err
		}
		var in [][]int
		for _, name := range node.In {
			in = append(in, x.shapes[name])
		}
		n := len(op.Params(in))
		if wanted(node.Name) {
			if err := x.node(node, op, x.parameters(params[:n])); err != nil {
				return err
			}
		}
		params = params[n:]
	}
	return nil
}

// parameters returns the places of parameters.
func (x *program) parameters(list []policy.Param) (places []uint32) {
	for _, t := range list {
		places = append(places, x.floats(x.Weights.Params[t.Offset:t.Offset+t.Rows*t.Cols]))
	}
	return places
}

// enter appends what makes numbers of an input.
func (x *program) enter(in *policy.Input, from uint32, stat int) {
	elems, frames, to := layer.Elems(in.Shape), uint32(in.Frames()), x.places[in.Path]
	if in.Norm == policy.OneHot {
		counts := make([]int, elems)
		for i := range counts {
			counts[i] = in.Choices[i%len(in.Choices)]
		}
		x.op(opOneHot, from, to, frames, uint32(elems), uint32(int32(in.Start)), x.ints(counts))
		return
	}
	channels, plane := elems, 0
	if len(in.Shape) == 3 {
		channels = in.Shape[2]
		if in.CHW {
			channels, plane = in.Shape[0], in.Shape[1]*in.Shape[2]
		}
	}
	var mean, scale uint32
	switch in.Norm {
	case policy.Scaled:
		scale = x.floats([]float32{in.Scale})
	case policy.Running:
		mean, scale = x.floats(x.Weights.ObsMean[stat:stat+elems]), x.floats(x.Weights.ObsScale[stat:stat+elems])
	}
	x.op(opEnter, from, to, frames, uint32(elems), uint32(channels), uint32(plane), programNorms[in.Norm], mean, scale)
}

// node appends a node.
func (x *program) node(node *policy.Node, op layer.Op, params []uint32) error {
	in, shape := x.places[node.In[0]], x.shapes[node.In[0]]
	n, elems := uint32(layer.Elems(shape)), uint32(layer.Elems(x.shapes[node.Name]))
	last := func(name string) uint32 { s := x.shapes[name]; return uint32(s[len(s)-1]) }
	if _, ok := op.(*layer.Flatten); ok {
		x.places[node.Name] = in
		return nil
	}
	out := x.tensor(int(elems))
	x.places[node.Name] = out
	switch op := op.(type) {
	case *layer.Dense:
		x.op(opDense, out, elems, in, n, params[0], params[1])
	case *layer.Activation:
		f, ok := programFuncs[op.Func]
		if !ok {
			return fmt.Errorf("node %q: activation %q in a WebAssembly module is %w", node.Name, op.Func, policy.ErrUnsupported)
		}
		x.op(opActivation, f, in, out, elems)
	case *layer.Conv2D:
		x.op(opConv, append(x.window(node, &op.Window, in, out), uint32(op.Out), params[0], params[1])...)
	case *layer.MaxPool:
		x.op(opMaxPool, x.window(node, &op.Window, in, out)...)
	case *layer.Add:
		x.op(opCopy, out, in, elems, 1, 0, 0)
		for _, name := range node.In[1:] {
			x.op(opAdd, out, out, x.places[name], elems)
		}
	case *layer.Concat:
		to := out
		for _, name := range node.In {
			x.op(opCopy, to, x.places[name], last(name), elems/last(node.Name), last(node.Name), last(name))
			to += last(name)
		}
	case *layer.LayerNorm:
		x.op(opLayerNorm, in, out, last(node.Name), elems/last(node.Name), params[0], params[1])
	case *layer.Append:
		more := x.floats(repeated(op.Init, op.N))
		if !op.Fixed {
			more = params[0]
		}
		x.op(opCopy, out, in, n, 1, 0, 0)
		x.op(opCopy, out+n, more, uint32(op.N), 1, 0, 0)
	case *layer.GRU:
		x.core(opGRU, op, 3, []uint32{in, n, out, elems}, params)
	case *layer.LSTM:
		x.core(opLSTM, op, 4, []uint32{in, n, out, elems}, params)
	default:
		return fmt.Errorf("node %q: %v in a WebAssembly module is %w", node.Name, op, policy.ErrUnsupported)
	}
	return nil
}

// window returns the operands of a window over a picture.
func (x *program) window(node *policy.Node, w *layer.Window, in, out uint32) []uint32 {
	from, to := x.shapes[node.In[0]], x.shapes[node.Name]
	return []uint32{in, out, uint32(from[0]), uint32(from[1]), uint32(from[2]), uint32(w.Kernel), uint32(w.Stride), uint32(w.Pad), uint32(to[0]), uint32(to[1])}
}

// core appends a node with a state, with room for its gates.
func (x *program) core(op uint32, of layer.Core, gates int, operands, params []uint32) {
	operands = append(append(operands, x.state), params...)
	x.state += uint32(of.State())
	x.op(op, append(operands, x.tensor(2*gates*int(operands[3])))...)
}

// heads appends the actions.
func (x *program) heads() error {
	params, action, mask := x.head[2*programParams], x.head[2*programActions], uint32(0)
	for i := range x.Network.Policy {
		d := &x.Network.Policy[i]
		of, from := written(d), x.places[d.From]
		n := uint32(of.Elems())
		if d.Bernoulli != nil { // the logit 0 stands before each of the value 1
			x.op(opCopy, params+1, from, 1, n/2, 2, 1)
		} else {
			x.op(opCopy, params, from, n, 1, 0, 0)
		}
		size := uint32(of.Size())
		if of.Continuous() {
			x.op(opBox, params, action, size, x.floats(d.Bounds.Low), x.floats(d.Bounds.High), number(d.Gaussian.Squash == head.Tanh), number(d.Scaled()))
		} else {
			most := slices.Max(d.Counts())
			if first := int64(d.Start); first < -wholeFloat || first+int64(most) > wholeFloat {
				return fmt.Errorf("action %q has values from %d to %d, and a WebAssembly module gives float32: %w", d.Action, d.Start, first+int64(most)-1, policy.ErrUnsupported)
			}
			x.op(opChoose, params, action, mask, size, x.ints(d.Counts()), uint32(d.Start))
			mask += uint32(of.Choices())
		}
		params, action = params+n, action+size
	}
	return nil
}

// wholeFloat bounds the whole numbers that float32 has without gaps.
const wholeFloat = 1 << 24

func number(holds bool) uint32 {
	if holds {
		return 1
	}
	return 0
}

// bytes returns the head and the image as they lie in memory.
func (x *program) bytes() (first, image []byte) {
	return little(x.head[:]), little(x.image)
}

func little(words []uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

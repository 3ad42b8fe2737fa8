package policy

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy/layer"
	"github.com/rlhost/rlhost/hostabi"
)

// Entry turns rows as they are stored into the numbers that enter a network: the segments of all inputs, one after the
// other. Each number is written once, from where the environment wrote it. An entry is immutable but for its statistics.
type Entry struct {
	inputs []entered
	// Mean and Scale are the running statistics, Network.Stats long; empty without any.
	Mean, Scale []float32
}

// entered is one input.
type entered struct {
	*Input
	dtype  hostabi.DType
	size   int // bytes of a stored element
	elems  int // of a frame
	width  int // of the segment
	at     int // where the segment begins
	stat   int // where the statistics begin, for Running
	first  []int
	pixels [256]float32 // what a byte enters as
}

// NewEntry returns the entry of a valid network. at says where each input's segment begins in a row; nil means one right
// after the other.
func NewEntry(n *Network, at []int) *Entry {
	e := &Entry{inputs: make([]entered, len(n.Inputs))}
	end, stat := 0, 0
	for i := range n.Inputs {
		in := n.Inputs[i]
		x := &e.inputs[i]
		*x = entered{Input: &in, dtype: in.Type(), elems: layer.Elems(in.Shape), width: layer.Elems(in.Entered()), at: end, stat: stat}
		x.size = x.dtype.Bytes()
		if at != nil {
			x.at = at[i]
		}
		if end += x.width; in.Norm == Running {
			stat += x.elems
		}
		if in.Norm == OneHot {
			sum := 0
			for i := range x.elems {
				x.first = append(x.first, sum)
				sum += in.count(i)
			}
		}
		for v := range x.pixels {
			x.pixels[v] = x.scaled(float32(v))
		}
	}
	return e
}

// scaled is what a number enters as where neither statistics nor values matter.
func (x *entered) scaled(v float32) float32 {
	if x.Norm == Scaled {
		return v * x.Scale
	}
	return v
}

// place returns where element i of a frame lies in the segment.
func (x *entered) place(frame, i int) int {
	k := x.Frames()
	if len(x.Shape) != 3 {
		return frame*x.elems + i
	}
	channels, channel, pixel := x.Shape[2], i%x.Shape[2], i/x.Shape[2]
	if x.CHW {
		plane := x.Shape[1] * x.Shape[2]
		channels, channel, pixel = x.Shape[0], i/plane, i%plane
	}
	return pixel*channels*k + frame*channels + channel
}

// number returns a stored element.
func (x *entered) number(b []byte) float32 {
	le := binary.LittleEndian
	switch x.dtype {
	case hostabi.U8, hostabi.Bool:
		return float32(b[0])
	case hostabi.I8:
		return float32(int8(b[0]))
	case hostabi.I16:
		return float32(int16(le.Uint16(b)))
	case hostabi.I32:
		return float32(int32(le.Uint32(b)))
	case hostabi.I64:
		return float32(int64(le.Uint64(b)))
	case hostabi.F64:
		return float32(math.Float64frombits(le.Uint64(b)))
	}
	return math.Float32frombits(le.Uint32(b))
}

// value returns the number of a discrete element's value among those of all elements; ok is false for one that it does
// not have. The guest can rewrite it at any time, so it is read once.
func (x *entered) value(b []byte, i int) (v int, ok bool) {
	le := binary.LittleEndian
	switch x.dtype {
	case hostabi.I32:
		v = int(int32(le.Uint32(b)))
	case hostabi.I64:
		v = int(int64(le.Uint64(b)))
	default:
		v = int(x.number(b))
	}
	v -= x.Start
	if v < 0 || v >= x.count(i) {
		return 0, false
	}
	return x.first[i] + v, true
}

// EnteredRow is room for a row that enters: its numbers or, for a network that reads Pixels, the bytes that they are made
// from, without Input.Scale.
type EnteredRow struct {
	Numbers []float32
	Bytes   []byte
}

// clear makes an input zero.
func (to EnteredRow) clear(x *entered) { clear(to.Numbers[x.at : x.at+x.width]) }

// enter writes a frame to its places in a row. Element i of the frame is at data[i*stride].
func (x *entered) enter(to EnteredRow, frame int, data []byte, stride int, mean, scale []float32) {
	if to.Bytes != nil {
		x.interleave(to.Bytes, frame, data, stride)
		return
	}
	dst := to.Numbers[x.at : x.at+x.width]
	switch {
	case x.Norm == OneHot:
		x.oneHot(dst, frame, data, stride)
	case x.size == 1 && stride == 1 && x.Norm != Running && x.dtype != hostabi.I8:
		x.bytes(dst, frame, data[:x.elems])
	case x.Norm == Running:
		for i := range x.elems {
			v := (x.number(data[i*stride:]) - mean[x.stat+i]) * scale[x.stat+i]
			dst[x.place(frame, i)] = min(max(v, -ObsClip), ObsClip)
		}
	default:
		for i := range x.elems {
			dst[x.place(frame, i)] = x.scaled(x.number(data[i*stride:]))
		}
	}
}

// bytes enters a dense frame of bytes.
func (x *entered) bytes(dst []float32, frame int, data []byte) {
	if x.CHW {
		for i, b := range data {
			dst[x.place(frame, i)] = x.pixels[b]
		}
		return
	}
	inner, step := x.elems, x.elems // elements that stay together, and from one of them to the next
	if len(x.Shape) == 3 {
		inner, step = x.Shape[2], x.Shape[2]*x.Frames()
	}
	if inner == step {
		dst = dst[frame*inner:]
		for i, b := range data {
			dst[i] = x.pixels[b]
		}
		return
	}
	for at := frame * inner; len(data) >= inner; at, data = at+step, data[inner:] {
		for i, b := range data[:inner] {
			dst[at+i] = x.pixels[b]
		}
	}
}

// interleave copies a frame of a picture between the others of its stack.
func (x *entered) interleave(dst []byte, frame int, data []byte, stride int) {
	channels := x.Shape[2]
	step := channels * x.Frames()
	switch at := frame * channels; {
	case stride == 1 && step == channels:
		copy(dst, data[:x.elems])
	case stride == 1 && channels == 1:
		for _, b := range data[:x.elems] {
			dst[at] = b
			at += step
		}
	default:
		for i := range x.elems {
			dst[at+i/channels*step+i%channels] = data[i*stride]
		}
	}
}

func (x *entered) oneHot(dst []float32, frame int, data []byte, stride int) {
	width := x.width / x.Frames()
	dst = dst[frame*width : (frame+1)*width]
	clear(dst)
	for i := range x.elems {
		if v, ok := x.value(data[i*stride:], i); ok {
			dst[v] = 1
		}
	}
}

// Request enters a row of a request that was checked. What is between the segments is not touched.
func (e *Entry) Request(to EnteredRow, r *Request, row int) {
	age := maxAge
	if r.Age != nil {
		age = int(r.Age[row])
	}
	at := 0
	for i := range e.inputs {
		x := &e.inputs[i]
		k := x.Frames()
		if x.From != "" && age == 0 {
			to.clear(x)
		} else {
			for f := range k {
				m := &r.Obs[at+max(f, k-1-age)]
				x.enter(to, f, m.Data[row*m.StrideRow:], m.StrideElem, e.Mean, e.Scale)
			}
		}
		at += k
	}
}

// maxAge is how many rows an episode is known to have been running at most.
const maxAge = 255

// ObsPath returns the path of an environment's observation, by its place among them.
func ObsPath(spec *hostabi.EnvSpec, index int) string {
	all := spec.All(hostabi.RoleObservation)
	if all[index].Path != "" {
		return all[index].Path
	}
	return Numbered(onlyObs, index)
}

// Numbered returns the path of the tensor with that index among those that have only one name: obs, obs/1 and so on.
func Numbered(name string, index int) string {
	if index == 0 {
		return name
	}
	return name + "/" + strconv.Itoa(index)
}

// indexOf is the inverse of Numbered, or -1 for a path that has another name. It does not allocate.
func indexOf(name, path string) int {
	rest, ok := strings.CutPrefix(path, name)
	if ok && rest == "" {
		return 0
	}
	number, slash := strings.CutPrefix(rest, "/")
	if i, err := strconv.Atoi(number); ok && slash && err == nil && i > 0 {
		return i
	}
	return -1
}

// onlyObs is the path of an observation that has none.
const onlyObs = "obs"

// obsIndex returns the place of the observation with a path, or -1. It does not allocate.
func obsIndex(spec *hostabi.EnvSpec, path string) int {
	index, last := 0, -1
	for i := range spec.Tensors {
		t := &spec.Tensors[i]
		if t.Role != hostabi.RoleObservation {
			continue
		}
		if t.Path == path {
			return index
		}
		if t.Path == "" && path == onlyObs && index == 0 {
			return 0
		}
		last = index
		index++
	}
	if i := indexOf(onlyObs, path); i > 0 && i <= last {
		return i
	}
	return -1
}

// column returns where an input lies in blocks of a schema: what is observed at a row, and what was before row 0.
func (in *Input) column(s *trajectory.Schema) (now, past trajectory.Column, err error) {
	switch in.From {
	case LastAction:
		index := indexOf(string(LastAction), in.Path)
		if index < 0 {
			return 0, 0, fmt.Errorf("%w: no action is called %q", ErrDataset, in.Path)
		}
		now, past = trajectory.Action.At(index), trajectory.PastAction.At(index)
	case LastReward:
		now, past = trajectory.Reward, trajectory.PastReward
	default:
		index := obsIndex(&s.Spec, in.Path)
		if index < 0 {
			return 0, 0, fmt.Errorf("%w: %s has no observation %q", ErrDataset, s.Spec.Name, in.Path)
		}
		now, past = trajectory.Obs.At(index), trajectory.PastObs.At(index)
	}
	l, ok := s.Layout(now)
	switch {
	case !ok || l.Elems != layer.Elems(in.Shape):
		return 0, 0, fmt.Errorf("%w: %v has %d elements, the network's input %s has %d", ErrDataset, now, l.Elems, in.Path, layer.Elems(in.Shape))
	case l.DType != in.Type():
		return 0, 0, fmt.Errorf("%w: %v has elements of %v, the network's input %s of %v", ErrDataset, now, l.DType, in.Path, in.Type())
	case in.lag(0) > s.Shape.Past:
		return 0, 0, fmt.Errorf("%w: blocks keep %d rows before their first, the network's input %s reads %d",
			ErrDataset, s.Shape.Past, in.Path, in.lag(0))
	}
	return now, past, nil
}

// Binding says where the inputs of a network lie in the blocks of one schema.
type Binding struct {
	Schema *trajectory.Schema
	frames []frame
	now    []trajectory.Layout // by input
	before []trajectory.Layout
	ages   trajectory.Layout
	aged   bool
}

// frame is one frame of an input.
type frame struct {
	now, past trajectory.Column
	lag       int
}

// Bind finds a valid network's inputs in the blocks of a schema, or says which does not fit.
func (n *Network) Bind(s *trajectory.Schema) (*Binding, error) {
	b := &Binding{Schema: s}
	for i := range n.Inputs {
		in := &n.Inputs[i]
		now, past, err := in.column(s)
		if err != nil {
			return nil, err
		}
		for f := range in.Frames() {
			b.frames = append(b.frames, frame{now, past, in.lag(f)})
		}
		l, _ := s.Layout(now)
		b.now = append(b.now, l)
		l, _ = s.Layout(past)
		b.before = append(b.before, l)
	}
	b.ages, b.aged = s.Layout(trajectory.Age)
	return b, nil
}

// Row appends the frames of a row of a block to dst, as Request.Obs has them.
func (b *Binding) Row(dst []trajectory.Matrix, tr trajectory.Trajectory, row int) []trajectory.Matrix {
	for _, f := range b.frames {
		dst = append(dst, f.at(tr, row-f.lag))
	}
	return dst
}

// Final is Row for the last observations of episodes that ended in step t.
func (b *Binding) Final(dst []trajectory.Matrix, tr trajectory.Trajectory, t int) []trajectory.Matrix {
	for _, f := range b.frames {
		if f.now.Kind() == trajectory.Obs && f.lag == 0 {
			dst = append(dst, tr.Row(trajectory.FinalObs.At(f.now.Index()), 0))
			continue
		}
		dst = append(dst, f.at(tr, t+1-f.lag))
	}
	return dst
}

// at returns the frame in a row, which may be one before the block's first.
func (f *frame) at(tr trajectory.Trajectory, row int) trajectory.Matrix {
	if row >= 0 {
		return tr.Row(f.now, row)
	}
	return tr.Row(f.past, tr.Schema.Shape.Past+row)
}

// Ages returns how many rows the episodes of a row have been running, 255 at most, or nil where the network does not
// depend on it.
func (b *Binding) Ages(tr trajectory.Trajectory, row int) []byte {
	if !b.aged {
		return nil
	}
	return tr.Row(trajectory.Age, row).Data
}

// Gather enters rows of a dataset.
type Gather struct {
	entry   *Entry
	dataset *Dataset
	bound   *Binding
}

// Open prepares the gather of a checked dataset's rows for a network and its entry. It does not allocate when it is used
// again for the same blocks.
func (g *Gather) Open(n *Network, e *Entry, d *Dataset) {
	g.entry, g.dataset = e, d
	e.Mean, e.Scale = d.ObsMean, d.ObsScale
	if s := d.Blocks[0].Schema; g.bound == nil || g.bound.Schema != s {
		g.bound, _ = n.Bind(s)
	}
}

// Close forgets the dataset.
func (g *Gather) Close() { g.dataset = nil }

// Row enters a row of the dataset, t*E + e. What is between the segments is not touched.
func (g *Gather) Row(to EnteredRow, row uint32) {
	d, b := g.dataset, g.bound
	envs := uint32(d.Envs())
	t, e := int(row/envs), int(row%envs)
	width := d.BlockEnvs()
	mem, env := d.Blocks[e/width].Mem, e%width
	age := maxAge
	if b.aged {
		age = int(mem[b.ages.Offset+t*b.ages.StrideT+env*b.ages.StrideEnv])
	}
	for i := range g.entry.inputs {
		x := &g.entry.inputs[i]
		if x.From != "" && age == 0 {
			to.clear(x)
			continue
		}
		for f := range x.Frames() {
			l, at := &b.now[i], t-min(x.lag(f), age)
			if at < 0 {
				l = &b.before[i]
				at += l.Rows
			}
			x.enter(to, f, mem[l.Offset+at*l.StrideT+env*l.StrideEnv:], l.StrideElem, g.entry.Mean, g.entry.Scale)
		}
	}
}

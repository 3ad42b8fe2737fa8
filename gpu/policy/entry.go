package policy

import (
	"encoding/binary"
	"math"

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
	pixels [256]float32 // input for each byte
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

// scaled is the input for a number where neither statistics nor values matter.
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

// value returns the index of a discrete element's value among the values of all elements; ok is false for an invalid
// value. The guest can rewrite it at any time, so it is read once.
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

// Request enters a row of a request that was checked. Memory between the segments is not touched.
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

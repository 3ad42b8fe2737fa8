package component

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// A state as bytes, little endian: stateMagic, u64 length of the head, the head as JSON (see stateHead), then the
// tensors' float32 elements and the blobs, in the order of the head and without gaps. Components in other languages
// write it too.
const (
	stateMagic  = "RLSTATE1"
	stateHeadAt = 16
)

// Limits of DecodeState.
const (
	MaxStateHead  = 64 << 20
	MaxStateParts = 1 << 16 // tensors, and blobs
)

// OpaqueBlob is the name of the one blob of a State whose bytes were not in the format of EncodeState: the
// saved state of a component with its own format.
const OpaqueBlob = "state"

// ErrState is wrapped by DecodeState for bytes that are no state.
var ErrState = errors.New("saved state not accepted")

// stateHead is the JSON document at the start of a state.
type stateHead struct {
	Meta    json.RawMessage `json:"meta"`
	Tensors []stateTensor   `json:"tensors"` // in the order of their names
	Blobs   []stateBlob     `json:"blobs"`   // in the order of their names
}

type stateTensor struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
}

type stateBlob struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"`
}

// EncodeState returns a state as bytes, the same bytes for the same state. A state that DecodeState found opaque
// gives back its original bytes.
func EncodeState(s State) ([]byte, error) {
	if raw, ok := s.Blobs[OpaqueBlob]; ok && len(s.Blobs) == 1 && len(s.Tensors) == 0 && s.Meta == nil && s.RawMeta == nil && !isState(raw) {
		return slices.Clone(raw), nil
	}
	head := stateHead{Meta: s.RawMeta}
	if head.Meta == nil {
		var err error
		if head.Meta, err = json.Marshal(s.Meta); err != nil {
			return nil, fmt.Errorf("saved state: %w", err)
		}
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(s.Tensors)) {
		t := s.Tensors[name]
		if n, ok := elements(t.Shape); !ok || n != len(t.Data) {
			return nil, fmt.Errorf("saved state: tensor %q of shape %v has %d elements", name, t.Shape, len(t.Data))
		}
		head.Tensors = append(head.Tensors, stateTensor{name, t.Shape})
		size += 4 * len(t.Data)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Blobs)) {
		head.Blobs = append(head.Blobs, stateBlob{name, len(s.Blobs[name])})
		size += len(s.Blobs[name])
	}
	doc, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("saved state: %w", err)
	}
	b := make([]byte, 0, stateHeadAt+len(doc)+size)
	b = append(b, stateMagic...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(doc)))
	b = append(b, doc...)
	return s.appendParts(b, &head), nil
}

func (s *State) appendParts(b []byte, head *stateHead) []byte {
	for _, t := range head.Tensors {
		for _, v := range s.Tensors[t.Name].Data {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
	}
	for _, blob := range head.Blobs {
		b = append(b, s.Blobs[blob.Name]...)
	}
	return b
}

// DecodeState is the inverse of EncodeState. Bytes in another format become the one blob OpaqueBlob. The state has
// copies of everything. Errors wrap ErrState.
func DecodeState(b []byte) (State, error) {
	if !isState(b) {
		return State{Blobs: map[string][]byte{OpaqueBlob: slices.Clone(b)}}, nil
	}
	b = b[len(stateMagic):]
	if len(b) < 8 {
		return State{}, fmt.Errorf("%w: it ends within its head", ErrState)
	}
	n := binary.LittleEndian.Uint64(b)
	b = b[8:]
	if n > MaxStateHead || n > uint64(len(b)) {
		return State{}, fmt.Errorf("%w: a head of %d bytes in %d", ErrState, n, len(b))
	}
	var head stateHead
	if err := json.Unmarshal(b[:n], &head); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrState, err)
	}
	if len(head.Tensors) > MaxStateParts || len(head.Blobs) > MaxStateParts {
		return State{}, fmt.Errorf("%w: %d tensors and %d blobs", ErrState, len(head.Tensors), len(head.Blobs))
	}
	return head.read(b[n:])
}

// read decodes the parts that the head announces from b.
func (h *stateHead) read(b []byte) (State, error) {
	s := State{RawMeta: h.Meta, Tensors: map[string]Tensor{}, Blobs: map[string][]byte{}}
	if s.RawMeta == nil {
		s.RawMeta = []byte("null")
	}
	for _, t := range h.Tensors {
		n, ok := elements(t.Shape)
		if _, twice := s.Tensors[t.Name]; twice || !ok || n > len(b)/4 {
			return State{}, fmt.Errorf("%w: tensor %q of shape %v in %d bytes", ErrState, t.Name, t.Shape, len(b))
		}
		data := make([]float32, n)
		for i := range data {
			data[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		s.Tensors[t.Name] = Tensor{Shape: slices.Clone(t.Shape), Data: data}
		b = b[4*n:]
	}
	for _, blob := range h.Blobs {
		if _, twice := s.Blobs[blob.Name]; twice || blob.Bytes < 0 || blob.Bytes > len(b) {
			return State{}, fmt.Errorf("%w: blob %q of %d bytes in %d", ErrState, blob.Name, blob.Bytes, len(b))
		}
		s.Blobs[blob.Name] = slices.Clone(b[:blob.Bytes:blob.Bytes])
		b = b[blob.Bytes:]
	}
	if len(b) > 0 {
		return State{}, fmt.Errorf("%w: %d bytes follow its last part", ErrState, len(b))
	}
	return s, nil
}

func isState(b []byte) bool {
	return len(b) >= len(stateMagic) && string(b[:len(stateMagic)]) == stateMagic
}

// elements returns how many elements a tensor of that shape has; ok is false if there is no such tensor.
func elements(shape []int) (n int, ok bool) {
	n = 1
	for _, dim := range shape {
		if dim < 0 || dim > 0 && n > math.MaxInt32/dim {
			return 0, false
		}
		n *= dim
	}
	return n, true
}

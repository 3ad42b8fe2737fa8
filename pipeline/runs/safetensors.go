package runs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/component"
)

// maxTensorHeader bounds the JSON head of a safetensors file. A head has about 100 bytes a tensor.
const maxTensorHeader = 16 << 20

// maxRank bounds the dimensions of a tensor; NumPy has as many.
const maxRank = 64

// ErrTensors is wrapped by every error about the content of a safetensors file.
var ErrTensors = errors.New("not a valid safetensors file")

// dtypeBytes has the element sizes of the safetensors format.
var dtypeBytes = map[string]uint64{
	"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4,
	"U16": 2, "U8": 1, "BOOL": 1,
}

// tensorEntry is one tensor in the head of the file.
type tensorEntry struct {
	DType   string    `json:"dtype"`
	Shape   []uint64  `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// EncodeTensors returns tensors in the safetensors format, as float32, sorted by name. Equal tensors give equal
// bytes. metadata may be nil.
func EncodeTensors(tensors map[string]component.Tensor, metadata map[string]string) ([]byte, error) {
	var head bytes.Buffer
	head.WriteByte('{')
	if len(metadata) > 0 {
		if err := appendEntry(&head, "__metadata__", metadata); err != nil {
			return nil, err
		}
	}
	end := uint64(0)
	names := sortedNames(tensors)
	for _, name := range names {
		t := tensors[name]
		if err := checkShape(name, t); err != nil {
			return nil, err
		}
		e := tensorEntry{DType: "F32", Offsets: [2]uint64{end, end + 4*uint64(len(t.Data))}, Shape: []uint64{}}
		for _, n := range t.Shape {
			e.Shape = append(e.Shape, uint64(n))
		}
		end = e.Offsets[1]
		if err := appendEntry(&head, name, e); err != nil {
			return nil, err
		}
	}
	head.WriteByte('}')
	for head.Len()%8 != 0 {
		head.WriteByte(' ')
	}
	if head.Len() > maxTensorHeader {
		return nil, fmt.Errorf("names and shapes of %d tensors take %d bytes, the limit is %d",
			len(tensors), head.Len(), maxTensorHeader)
	}
	b := make([]byte, 0, 8+head.Len()+int(end))
	b = binary.LittleEndian.AppendUint64(b, uint64(head.Len()))
	b = append(b, head.Bytes()...)
	for _, name := range names {
		b = appendFloats(b, tensors[name].Data)
	}
	return b, nil
}

func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// appendEntry appends one member of the head's object.
func appendEntry(head *bytes.Buffer, key string, value any) error {
	if head.Len() > 1 {
		head.WriteByte(',')
	}
	for i, v := range []any{key, value} {
		if i == 1 {
			head.WriteByte(':')
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		head.Write(b)
	}
	return nil
}

// checkShape rejects a tensor whose shape and data disagree, a bug in the component.
func checkShape(name string, t component.Tensor) error {
	if name == "__metadata__" || !utf8.ValidString(name) {
		return fmt.Errorf("a tensor cannot be called %q", name)
	}
	elems := 1
	for _, n := range t.Shape {
		if n < 0 || n > 0 && elems > math.MaxInt/n {
			return fmt.Errorf("tensor %q has the shape %v", name, t.Shape)
		}
		elems *= n
	}
	if elems != len(t.Data) {
		return fmt.Errorf("tensor %q has %d elements, its shape %v says %d", name, len(t.Data), t.Shape, elems)
	}
	return nil
}

func appendFloats(b []byte, data []float32) []byte {
	for _, v := range data {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// DecodeTensors reads the safetensors format. It copies what it returns. Tensors that are not float32 are an
// error, as are holes, overlaps and everything else that the format forbids.
func DecodeTensors(b []byte) (map[string]component.Tensor, map[string]string, error) {
	entries, metadata, data, err := decodeHead(b)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrTensors, err)
	}
	if err := checkEntries(entries, uint64(len(data))); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrTensors, err)
	}
	tensors := make(map[string]component.Tensor, len(entries))
	for name, e := range entries {
		if e.DType != "F32" {
			return nil, nil, fmt.Errorf("%w: tensor %q has elements of type %q, want F32", ErrTensors, name, e.DType)
		}
		tensors[name] = tensorOf(e, data[e.Offsets[0]:e.Offsets[1]])
	}
	return tensors, metadata, nil
}

func tensorOf(e tensorEntry, data []byte) component.Tensor {
	t := component.Tensor{Shape: make([]int, len(e.Shape)), Data: make([]float32, len(data)/4)}
	for i, n := range e.Shape {
		t.Shape[i] = int(n)
	}
	for i := range t.Data {
		t.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return t
}

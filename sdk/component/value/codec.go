package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ErrFormat is what errors about bytes that are no value wrap.
var ErrFormat = errors.New("no value of rlhost.plain")

const (
	maxDepth = 64 // lists in lists
	maxRank  = 32 // dimensions of an array
)

// Append appends the bytes of a value, as rlhost.plain writes them.
func (v Value) Append(to []byte) []byte {
	switch v.kind {
	case KindNone:
		return append(to, 'N')
	case KindBool:
		return append(to, "FT"[v.bits])
	case KindInt:
		return binary.LittleEndian.AppendUint64(append(to, 'i'), v.bits)
	case KindFloat:
		return binary.LittleEndian.AppendUint64(append(to, 'f'), v.bits)
	case KindLarge:
		i, _ := v.Large()
		return appendSized(to, 'I', twosComplement(i))
	case KindText:
		return appendSized(to, 's', []byte(v.text))
	case KindBytes:
		return appendSized(to, 'b', []byte(v.text))
	case KindArray:
		return v.appendArray(appendSized(to, 'a', []byte(v.dtype)))
	case KindElement:
		return v.appendArray(appendSized(to, 'g', []byte(v.dtype)))
	}
	count := len(v.items)
	if v.kind == KindDict {
		count /= 2
	}
	to = binary.LittleEndian.AppendUint32(append(to, "([{"[v.kind-KindTuple]), uint32(count))
	for _, item := range v.items {
		to = item.Append(to)
	}
	return to
}

func (v Value) appendArray(to []byte) []byte {
	to = append(to, byte(len(v.shape)))
	for _, n := range v.shape {
		to = binary.LittleEndian.AppendUint64(to, uint64(n))
	}
	return append(to, v.text...)
}

func appendSized(to []byte, kind byte, data []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(append(to, kind), uint32(len(data))), data...)
}

// twosComplement returns an integer as Python's int.to_bytes writes it: little-endian, with room for the sign.
func twosComplement(i *big.Int) []byte {
	n := i.BitLen()/8 + 1
	whole := i
	if i.Sign() < 0 {
		whole = new(big.Int).Add(i, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	data := whole.FillBytes(make([]byte, n))
	slices.Reverse(data)
	return data
}

func fromTwosComplement(data []byte) *big.Int {
	big1 := slices.Clone(data)
	slices.Reverse(big1)
	i := new(big.Int).SetBytes(big1)
	if len(data) > 0 && data[len(data)-1]&0x80 != 0 {
		i.Sub(i, new(big.Int).Lsh(big.NewInt(1), uint(8*len(data))))
	}
	return i
}

// Parse returns the value of bytes that Append or rlhost.plain has written. It allocates no more than the bytes justify. Errors wrap ErrFormat.
func Parse(data []byte) (Value, error) {
	r := reader{data: data}
	v, err := r.value(maxDepth)
	if err == nil && r.at != len(data) {
		err = fmt.Errorf("it ends at %d", r.at)
	}
	if err != nil {
		return Value{}, fmt.Errorf("%d bytes are %w: %w", len(data), ErrFormat, err)
	}
	return v, nil
}

// reader reads bytes from at on.
type reader struct {
	data []byte
	at   int
}

var errEnd = errors.New("it is cut")

func (r *reader) take(n int) ([]byte, error) {
	if n > len(r.data)-r.at {
		return nil, errEnd
	}
	part := r.data[r.at : r.at+n]
	r.at += n
	return part, nil
}

func (r *reader) value(depth int) (Value, error) {
	if depth == 0 {
		return Value{}, fmt.Errorf("it is more than %d deep", maxDepth)
	}
	tag, err := r.take(1)
	if err != nil {
		return Value{}, err
	}
	switch tag[0] {
	case 'N':
		return Value{}, nil
	case 'T', 'F':
		return Bool(tag[0] == 'T'), nil
	case 'i', 'f':
		return r.number(tag[0])
	case '(', '[', '{':
		return r.items(tag[0], depth)
	case 'I', 's', 'b', 'a', 'g':
		return r.sized(tag[0])
	}
	return Value{}, fmt.Errorf("byte %d is %q", r.at-1, tag)
}

func (r *reader) number(tag byte) (Value, error) {
	data, err := r.take(8)
	if err != nil {
		return Value{}, err
	}
	bits := binary.LittleEndian.Uint64(data)
	if tag == 'i' {
		return Int(int64(bits)), nil
	}
	return Float(math.Float64frombits(bits)), nil
}

func (r *reader) count() (int, error) {
	data, err := r.take(4)
	if err != nil {
		return 0, err
	}
	n := binary.LittleEndian.Uint32(data)
	if uint64(n) > uint64(len(r.data)-r.at) { // each item takes a byte or more
		return 0, errEnd
	}
	return int(n), nil
}

func (r *reader) items(tag byte, depth int) (Value, error) {
	n, err := r.count()
	v := Value{kind: map[byte]Kind{'(': KindTuple, '[': KindList, '{': KindDict}[tag]}
	if v.kind == KindDict {
		n *= 2
	}
	for range n {
		if err != nil {
			break
		}
		var item Value
		item, err = r.value(depth - 1)
		v.items = append(v.items, item)
	}
	return v, err
}

func (r *reader) sized(tag byte) (Value, error) {
	n, err := r.count()
	if err != nil {
		return Value{}, err
	}
	data, err := r.take(n)
	if err != nil {
		return Value{}, err
	}
	switch tag {
	case 'I':
		i := fromTwosComplement(data)
		if i.IsInt64() {
			return Int(i.Int64()), nil
		}
		return Value{kind: KindLarge, text: i.String()}, nil
	case 's':
		if !utf8.Valid(data) {
			return Value{}, errors.New("a text is not UTF-8")
		}
		return Text(string(data)), nil
	case 'b':
		return Bytes(data), nil
	}
	return r.array(string(data), tag == 'a')
}

func (r *reader) array(dtype string, whole bool) (Value, error) {
	rank, err := r.take(1)
	if err != nil {
		return Value{}, err
	}
	if rank[0] > maxRank || !whole && rank[0] != 0 {
		return Value{}, fmt.Errorf("an array has %d dimensions", rank[0])
	}
	shape := make([]int, rank[0])
	for i := range shape {
		n, err := r.take(8)
		if err != nil {
			return Value{}, err
		}
		shape[i] = int(min(binary.LittleEndian.Uint64(n), math.MaxInt))
	}
	size, ok := arrayBytes(dtype, shape)
	if !ok {
		return Value{}, fmt.Errorf("an array of %q and the shape %v", dtype, shape)
	}
	data, err := r.take(size)
	v := Value{kind: KindArray, dtype: dtype, shape: shape, text: string(data)}
	if !whole {
		v.kind = KindElement
	}
	return v, err
}

// arrayBytes returns the bytes of an array; ok is false for a dtype that has none, and for more than an int holds.
func arrayBytes(dtype string, shape []int) (size int, ok bool) {
	if len(dtype) < 3 || !slices.Contains([]byte("<>|="), dtype[0]) || !slices.Contains([]byte("biufc"), dtype[1]) {
		return 0, false
	}
	size, err := strconv.Atoi(dtype[2:])
	if err != nil || size < 1 || size > 32 {
		return 0, false
	}
	if slices.Contains(shape, 0) {
		return 0, true
	}
	for _, n := range shape {
		if n < 0 || n > math.MaxInt32/size {
			return 0, false
		}
		size *= n
	}
	return size, true
}

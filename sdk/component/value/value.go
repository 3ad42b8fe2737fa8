package value

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
)

// Value is what a message carries. The zero Value is None.
type Value struct {
	kind  Kind
	bits  uint64 // of a Bool, an Int or a Float
	text  string // of a Text, of Bytes and of a Large in decimal; an array's elements
	dtype string // of an array
	shape []int
	items []Value // of a List and a Tuple; of a Dict each key and its value
}

// Kind says what a Value is.
type Kind uint8

// Kinds.
const (
	KindNone Kind = iota
	KindBool
	KindInt   // of 64 bits
	KindLarge // an integer of more
	KindFloat
	KindText
	KindBytes
	KindTuple
	KindList
	KindDict
	KindArray
	KindElement // one element of an array, of NumPy's type of it
)

var kindNames = [...]string{"none", "bool", "int", "large", "float", "text", "bytes", "tuple", "list", "dict", "array", "element"}

// String returns the kind's name.
func (k Kind) String() string { return kindNames[k] }

// Bool returns true or false as a Value.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, bits: 1}
	}
	return Value{kind: KindBool}
}

// Int returns an integer as a Value.
func Int(i int64) Value { return Value{kind: KindInt, bits: uint64(i)} }

// Float returns a number as a Value.
func Float(f float64) Value { return Value{kind: KindFloat, bits: math.Float64bits(f)} }

// Text returns a text as a Value.
func Text(s string) Value { return Value{kind: KindText, text: s} }

// Bytes returns bytes, copied, as a Value.
func Bytes(b []byte) Value { return Value{kind: KindBytes, text: string(b)} }

// List returns a list, Python's list.
func List(items ...Value) Value { return Value{kind: KindList, items: items} }

// Tuple returns a list that Python gets as a tuple.
func Tuple(items ...Value) Value { return Value{kind: KindTuple, items: items} }

// Dict returns a dict of keys that are each followed by their value. It panics if the last one has none.
func Dict(keysAndValues ...Value) Value {
	if len(keysAndValues)%2 != 0 {
		panic("value: a key of a dict without a value")
	}
	return Value{kind: KindDict, items: keysAndValues}
}

// Array returns an array of elements in row-major order, little-endian, which are copied. dtype is NumPy's, such as <f4, |u1 or |b1. It panics
// if there are not as many bytes as dtype and shape say.
func Array(dtype string, shape []int, data []byte) Value {
	if size, ok := arrayBytes(dtype, shape); !ok || size != len(data) {
		panic(fmt.Sprintf("value: %d bytes for an array %s of the shape %v", len(data), dtype, shape))
	}
	return Value{kind: KindArray, dtype: dtype, shape: slices.Clone(shape), text: string(data)}
}

// Kind returns what the value is.
func (v Value) Kind() Kind { return v.kind }

// Bool returns a bool; ok is false for other kinds.
func (v Value) Bool() (b, ok bool) { return v.bits != 0, v.kind == KindBool }

// Int returns an integer of 64 bits; ok is false for other kinds.
func (v Value) Int() (i int64, ok bool) { return int64(v.bits), v.kind == KindInt }

// Float returns a number, also of an integer; ok is false for other kinds.
func (v Value) Float() (f float64, ok bool) {
	switch v.kind {
	case KindInt:
		return float64(int64(v.bits)), true
	case KindFloat:
		return math.Float64frombits(v.bits), true
	}
	return 0, false
}

// Text returns a text; ok is false for other kinds.
func (v Value) Text() (s string, ok bool) {
	if v.kind != KindText {
		return "", false
	}
	return v.text, true
}

// Bytes returns a copy of bytes; ok is false for other kinds.
func (v Value) Bytes() (b []byte, ok bool) {
	if v.kind != KindBytes {
		return nil, false
	}
	return []byte(v.text), true
}

// Items returns the members of a list or a tuple, and of a dict each key and its value; nil for other kinds. They are not to be changed.
func (v Value) Items() []Value { return v.items }

// Get returns what a dict has under a text; ok is false if it has none, and for other kinds.
func (v Value) Get(key string) (found Value, ok bool) {
	if v.kind != KindDict {
		return Value{}, false
	}
	for i := 0; i < len(v.items); i += 2 {
		if k := &v.items[i]; k.kind == KindText && k.text == key {
			return v.items[i+1], true
		}
	}
	return Value{}, false
}

// Array returns the dtype of NumPy, the shape and the elements of an array, or of one element of an array, whose shape is empty. The
// elements are in row-major order, and in the byte order of the dtype: > is big-endian. ok is false for other kinds.
func (v Value) Array() (dtype string, shape []int, data []byte, ok bool) {
	if v.kind != KindArray && v.kind != KindElement {
		return "", nil, nil, false
	}
	return v.dtype, slices.Clone(v.shape), []byte(v.text), true
}

// Large returns an integer, of any size; ok is false for other kinds.
func (v Value) Large() (i *big.Int, ok bool) {
	switch v.kind {
	case KindInt:
		return big.NewInt(int64(v.bits)), true
	case KindLarge:
		return new(big.Int).SetString(v.text, 10)
	}
	return nil, false
}

// Equal reports whether two values are of the same kinds with the same bits.
func (v Value) Equal(o Value) bool {
	return v.kind == o.kind && v.bits == o.bits && v.text == o.text && v.dtype == o.dtype && slices.Equal(v.shape, o.shape) &&
		slices.EqualFunc(v.items, o.items, Value.Equal)
}

// String shows the value to people, as Python does nearly.
func (v Value) String() string {
	switch v.kind {
	case KindNone:
		return "None"
	case KindBool:
		return [...]string{"False", "True"}[v.bits]
	case KindInt:
		return fmt.Sprint(int64(v.bits))
	case KindFloat:
		return fmt.Sprint(math.Float64frombits(v.bits))
	case KindLarge:
		return v.text
	case KindText:
		return fmt.Sprintf("%q", v.text)
	case KindBytes:
		return fmt.Sprintf("b%q", v.text)
	case KindTuple:
		return "(" + v.members(", ") + ")"
	case KindList:
		return "[" + v.members(", ") + "]"
	case KindDict:
		return "{" + v.members(": ", ", ") + "}"
	}
	return fmt.Sprintf("%s %s%v of %d bytes", v.kind, v.dtype, v.shape, len(v.text))
}

// members joins the items, with the separators in turn.
func (v Value) members(separators ...string) string {
	var b strings.Builder
	for i, item := range v.items {
		if i > 0 {
			b.WriteString(separators[(i-1)%len(separators)])
		}
		b.WriteString(item.String())
	}
	return b.String()
}

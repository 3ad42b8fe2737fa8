package wire

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/rlhost/rlhost/hostabi"
)

// DType is the type of an array's elements: one of hostabi's, under the same number, or one of those below, which only
// arrays have, not tensors of environments.
type DType uint8

// Element types beyond hostabi.DType.
const (
	AnyDType   DType = 0 // of a track that takes all types
	F16        DType = 6
	BF16       DType = 7
	U16        DType = 16
	U32        DType = 17
	U64        DType = 18
	Complex64  DType = 19
	Complex128 DType = 20
	Bytes      DType = 32 // bytes without a type
	Plain      DType = 33 // a value of Python's, as bytes of rlhost.plain
	Described  DType = 34 // bytes of an array of NumPy, then its dtype and shape
	Pickled    DType = 35 // a value of Python's, as bytes of pickle
)

// Size returns the bytes of one element, or 0 for a type that does not exist.
func (d DType) Size() int {
	switch d {
	case U16, F16, BF16:
		return 2
	case U32:
		return 4
	case U64, Complex64:
		return 8
	case Complex128:
		return 16
	case Bytes, Plain, Described, Pickled:
		return 1
	}
	return hostabi.DType(d).Bytes()
}

// String returns the short name, such as f32.
func (d DType) String() string {
	switch d {
	case AnyDType:
		return "any"
	case F16:
		return "f16"
	case BF16:
		return "bf16"
	case U16:
		return "u16"
	case U32:
		return "u32"
	case U64:
		return "u64"
	case Complex64:
		return "c64"
	case Complex128:
		return "c128"
	case Bytes:
		return "bytes"
	case Plain:
		return "plain"
	case Described:
		return "described"
	case Pickled:
		return "pickled"
	}
	return hostabi.DType(d).String()
}

// MaxRank is the largest number of dimensions of an array.
const MaxRank = 8

// Value is the type and shape of a block's content: an array in row-major order from the first byte on.
type Value struct {
	DType DType
	Rank  uint8 // dimensions; 0 is a scalar
	Shape [MaxRank]uint64
}

// ValueOf returns the value of that type and shape; dimensions beyond MaxRank make it one that no track takes.
func ValueOf(d DType, shape ...int) Value {
	v := Value{DType: d, Rank: uint8(min(len(shape), math.MaxUint8))}
	for i, n := range shape[:min(len(shape), MaxRank)] {
		v.Shape[i] = uint64(n)
	}
	return v
}

// Size returns the bytes of the array; ok is false if type or rank do not exist or the product exceeds 63 bits.
func (v *Value) Size() (n uint64, ok bool) {
	n = uint64(v.DType.Size())
	if n == 0 || v.Rank > MaxRank {
		return 0, false
	}
	for _, dim := range v.Shape[:v.Rank] {
		high, low := bits.Mul64(n, dim)
		if high != 0 || low > math.MaxInt64 {
			return 0, false
		}
		n = low
	}
	return n, true
}

// String returns type and shape, such as f32[3 4].
func (v *Value) String() string {
	s := v.DType.String() + "["
	for i, n := range v.Shape[:min(v.Rank, MaxRank)] {
		if i > 0 {
			s += " "
		}
		s += strconv.FormatUint(n, 10)
	}
	return s + "]"
}

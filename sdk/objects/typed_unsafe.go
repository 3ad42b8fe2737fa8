package objects

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/hostabi"
)

// Element is an element type of arrays.
type Element interface {
	uint8 | int8 | int16 | int32 | int64 | uint16 | uint32 | uint64 | float32 | float64 | bool | complex64 | complex128
}

// DTypeOf returns the dtype of T.
func DTypeOf[T Element]() DType {
	switch any(*new(T)).(type) {
	case uint8:
		return DType(hostabi.U8)
	case int8:
		return DType(hostabi.I8)
	case int16:
		return DType(hostabi.I16)
	case int32:
		return DType(hostabi.I32)
	case int64:
		return DType(hostabi.I64)
	case float32:
		return DType(hostabi.F32)
	case float64:
		return DType(hostabi.F64)
	case bool:
		return DType(hostabi.Bool)
	case uint16:
		return wire.U16
	case uint32:
		return wire.U32
	case uint64:
		return wire.U64
	case complex64:
		return wire.Complex64
	}
	return wire.Complex128
}

// ValueOf returns the value of an array of that shape.
func ValueOf[T Element](shape ...int) Value { return wire.ValueOf(DTypeOf[T](), shape...) }

// View returns an array of an entry, row by row: the shared memory itself, read-only, valid until Release. Errors:
// ErrSpent after it, ErrTracks, ErrDType.
func View[T Element](e *Entry, track int) ([]T, error) {
	if track < 0 || track >= len(e.view.Values) {
		return nil, fmt.Errorf("object %q: entry %d: track %d: %w: it has %d", e.object.name, e.Index(), track, ErrTracks, e.Tracks())
	}
	return slice[T](e.object.name, e.Bytes(track), e.view.Values[track].DType)
}

// Slice returns an array of a Writing or a Lock. Errors as View.
func Slice[T Element](w Writable, track int) ([]T, error) {
	object, values := w.typed()
	if track < 0 || track >= len(values) {
		return nil, fmt.Errorf("object %q: track %d: %w: it has %d", object, track, ErrTracks, len(values))
	}
	return slice[T](object, w.Bytes(track), values[track].DType)
}

// slice sees bytes as elements. Blocks begin on cache lines of a mapping, so they are aligned for every Element, and
// the bytes of a value are a whole number of elements. A bool is not converted: only 0 and 1 are legal, and arrays of
// bool from other languages have no others.
func slice[T Element](name string, b []byte, have DType) ([]T, error) {
	if b == nil {
		return nil, fmt.Errorf("object %q: %w", name, ErrSpent)
	}
	if want := DTypeOf[T](); have != want && !(have == wire.Bytes && want == DType(hostabi.U8)) {
		return nil, fmt.Errorf("object %q: %w: %s, not %s", name, ErrDType, have, want)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b))/unsafe.Sizeof(*new(T))), nil
}

// Push copies an array into a new entry of an object of one track and returns its index; without a shape it has one
// dimension. It waits for a free block. Errors: ErrFull, ErrTracks, ErrDType, ErrTooLarge.
func Push[T Element](ctx context.Context, s *Store, name string, data []T, shape ...int) (uint64, error) {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	value := ValueOf[T](shape...)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), uintptr(len(data))*unsafe.Sizeof(*new(T)))
	if n, ok := value.Size(); !ok || n != uint64(len(b)) {
		return 0, fmt.Errorf("object %q: %d elements are no %s: %w", name, len(data), &value, ErrTooLarge)
	}
	return s.push(ctx, name, []Value{value}, [][]byte{b})
}

// PushBytes is Push of bytes without a type.
func (s *Store) PushBytes(ctx context.Context, name string, data []byte) (uint64, error) {
	return s.push(ctx, name, []Value{wire.ValueOf(wire.Bytes, len(data))}, [][]byte{data})
}

// Put is Push, but creates a missing object first: for capacity entries as large as this one.
func Put[T Element](ctx context.Context, s *Store, name string, capacity int, data []T, shape ...int) (uint64, error) {
	bytes := max(1, len(data)*int(unsafe.Sizeof(*new(T))))
	if s.objects.get(name) == nil {
		if err := s.Ensure(ctx, name, Config{Capacity: capacity, Tracks: []Track{{Bytes: bytes}}}); err != nil {
			return 0, err
		}
	}
	return Push(ctx, s, name, data, shape...)
}

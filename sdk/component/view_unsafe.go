package component

import (
	"fmt"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

// elements views the bytes of a column of dtype d as elements, in place.
func elements[T float32 | float64 | int32 | int64](c Column, d hostabi.DType) []T {
	c.check(d)
	p, size := unsafe.Pointer(unsafe.SliceData(c.Bytes)), d.Bytes()
	if uintptr(p)%uintptr(size) != 0 {
		panic(fmt.Sprintf("column %s at %p is not aligned to %d bytes", c.Name, p, size))
	}
	return unsafe.Slice((*T)(p), len(c.Bytes)/size)
}

package trajectory

import (
	"fmt"
	"unsafe"
)

// view reads n elements at a byte offset of mem in place. The bounds and the alignment are checked here, so a
// wrong layout panics instead of reading past the block; mem stays reachable through the result.
func view[T float32 | int32 | uint64 | Meta](mem []byte, offset, n int) []T {
	if n == 0 {
		return nil
	}
	var zero T
	bytes := mem[offset : offset+n*int(unsafe.Sizeof(zero))]
	p := unsafe.Pointer(unsafe.SliceData(bytes))
	if uintptr(p)%unsafe.Alignof(zero) != 0 {
		panic(fmt.Sprintf("trajectory: column at %p is not aligned to %d bytes", p, unsafe.Alignof(zero)))
	}
	return unsafe.Slice((*T)(p), n)
}

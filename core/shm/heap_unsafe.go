package shm

import "unsafe"

// alignedBytes returns size bytes whose first address is a multiple of align, a power of two. The address is
// only looked at: the Go heap does not move its objects.
func alignedBytes(size, align int) []byte {
	raw := make([]byte, size+align)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & (align - 1)
	return raw[skip : skip+size : skip+size]
}

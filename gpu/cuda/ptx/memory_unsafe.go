package ptx

import "unsafe"

// addressOf returns the address of b, which must not be empty. The number stays right while b is held: Go does not move
// objects on its heap, and an allocation of Memory holds its bytes.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// aligned returns n bytes that begin at a multiple of 8.
func aligned(n int) []byte {
	words := make([]uint64, (n+7)/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

// word32 is the word at offset off of b for the operations of sync/atomic. The caller has checked that it lies within b and
// that its address is a multiple of 4.
func word32(b []byte, off uint64) *uint32 {
	return (*uint32)(unsafe.Pointer(unsafe.SliceData(b[off : off+4])))
}

// word64 is word32 for eight bytes.
func word64(b []byte, off uint64) *uint64 {
	return (*uint64)(unsafe.Pointer(unsafe.SliceData(b[off : off+8])))
}

package policy

import "unsafe"

// float32s reads bytes in place; b is 4-byte aligned because blocks are page aligned and the head has 64 bytes.
func float32s(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

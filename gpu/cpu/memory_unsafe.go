package cpu

import "unsafe"

// aligned returns n zeros that begin on a cache line. The memory is an ordinary Go slice: it lives as long as the
// result, and the address is only looked at, not kept.
func aligned(n int) []float32 {
	const line = 16
	s := make([]float32, n+line)
	skip := int(-(uintptr(unsafe.Pointer(unsafe.SliceData(s))) / 4) % line)
	return s[skip : skip+n : skip+n]
}

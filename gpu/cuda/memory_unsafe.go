package cuda

import "unsafe"

// view returns a section's elements in memory of the host, which begins at a multiple of 256 bytes.
func view[E any](s *staged, x section) []E {
	b := s.bytes(x)
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(E))))
}

// sizeOf is the size of an element.
func sizeOf[E any]() int { return int(unsafe.Sizeof(*new(E))) }

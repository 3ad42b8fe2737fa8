package cuda

import "unsafe"

// view returns a section's elements in memory of the host, which begins at a multiple of 256 bytes.
func view[E any](s *staged, x section) []E {
	b := s.bytes(x)
	return unsafe.Slice((*E)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(E))))
}

// sizeOf is the size of an element.
func sizeOf[E any]() int { return int(unsafe.Sizeof(*new(E))) }

// place returns where part begins in memory, if it lies there and neither is empty.
func place(memory, part []byte) (at int, ok bool) {
	if len(memory) == 0 || len(part) == 0 {
		return 0, false
	}
	from, to := uintptr(unsafe.Pointer(unsafe.SliceData(memory))), uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	if to < from || to-from > uintptr(len(memory)) || uintptr(len(part)) > uintptr(len(memory))-(to-from) {
		return 0, false
	}
	return int(to - from), true
}

package session_test

import (
	"io/fs"
	"syscall"
	"unsafe"
)

// uintptrOf is the address of a slice's first byte.
func uintptrOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// bytesOf is the memory of a slice.
func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// inodeOf is the number that /proc/self/maps has for a file.
func inodeOf(f fs.FileInfo) uint64 { return f.Sys().(*syscall.Stat_t).Ino }

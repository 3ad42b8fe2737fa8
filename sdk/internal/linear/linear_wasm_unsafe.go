//go:build wasip1

package linear

import "unsafe"

// hostPage is the unit of memory that the host may map pages over, so that these pages never hold anything of Go's own. The host
// asks for such memory by its alignment.
const hostPage = 4096

// maxAlign is the largest alignment that the host may ask for.
const maxAlign = 65536

// donated holds the memory that the host was given, by address. The collector neither moves nor frees what it holds, and does not
// look into it, because it contains no pointers.
var donated = map[uint32][]byte{}

// Donate returns the address of size bytes at a multiple of align, or 0. The host has them until TakeBack.
func Donate(size, align uint32) uint32 {
	if align == 0 || align&(align-1) != 0 || align > maxAlign || size > 1<<31 {
		return 0
	}
	if align >= hostPage {
		size = (max(size, 1) + hostPage - 1) &^ (hostPage - 1)
	}
	block := make([]byte, int(size)+int(align))
	start := uint32(uintptr(unsafe.Pointer(unsafe.SliceData(block))))
	at := (start + align - 1) &^ (align - 1)
	donated[at] = block
	return at
}

// TakeBack lets go of memory that the host has freed.
func TakeBack(at uint32) { delete(donated, at) }

// Pointer returns the place of an address of linear memory: on wasm they are the same number.
func Pointer(at uint32) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), at) }

// Bytes views n bytes that the host wrote or wants written. They are the host's to answer for; it owns all of the guest's memory.
func Bytes(at, n uint32) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(Pointer(at)), n)
}

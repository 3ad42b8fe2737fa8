//go:build !wasip1

package wasm

import "unsafe"

// linear stands for linear memory in native tests.
var linear = make([]byte, 1<<20)

// pointer returns the place of an address; it panics outside of the stand-in.
func pointer(at uint32) unsafe.Pointer { return unsafe.Pointer(&linear[at]) }

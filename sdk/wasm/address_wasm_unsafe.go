//go:build wasip1

package wasm

import "unsafe"

// pointer returns the place of an address of linear memory: on wasm they are the same number.
func pointer(at uint32) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(nil), at) }

func address(p unsafe.Pointer) uint32 { return uint32(uintptr(p)) }

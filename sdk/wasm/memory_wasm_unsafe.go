//go:build wasip1

package wasm

import (
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/internal/linear"
)

// bindingsAt copies the host's bindings, which may be at any address.
func bindingsAt(at, n uint32) []hostabi.Binding {
	list := make([]hostabi.Binding, n)
	if n > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&list[0])), n*hostabi.BindingBytes), linear.Bytes(at, n*hostabi.BindingBytes))
	}
	return list
}

// pointer returns the place of an address of linear memory.
func pointer(at uint32) unsafe.Pointer { return linear.Pointer(at) }

func address(p unsafe.Pointer) uint32 { return uint32(uintptr(p)) }

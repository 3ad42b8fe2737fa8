package guest

import (
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// View returns n bytes of guest memory in place, or nil if out of bounds. It is valid until the guest is called.
func (i *Instance) View(ptr, n uint32) []byte {
	if !i.Mem.Contains(uint64(ptr), uint64(n)) {
		return nil
	}
	return i.Mem.Bytes()[ptr:][:n:n]
}

// Allocate asks the guest for n bytes for the host, at a multiple of align, and checks the result. The error is an *Error.
func (i *Instance) Allocate(n, align uint32) (uint32, error) {
	return i.ask(n, align, "its memory limit is ")
}

// ask is Allocate. The text comes before the limit where the guest has nothing to give.
func (i *Instance) ask(n, align uint32, text string) (uint32, error) {
	result, err := i.Call(hostabi.ExportAlloc, i.module.File.Config.Init, uint64(n), uint64(align))
	if err != nil {
		return 0, err
	}
	ptr := uint32(result)
	bad := func(format string, args ...any) error {
		return &Error{Kind: env.FaultMemory, Call: hostabi.ExportAlloc, Reason: fmt.Sprintf(format, args...), Wrong: ptr != 0}
	}
	if ptr == 0 {
		return 0, bad("the guest has no %s to give, %s%s", words.Bytes(uint64(n)), text, i.bounds())
	}
	if ptr%align != 0 {
		return 0, bad("the guest gave memory at %#x, which is not aligned to %d bytes as asked", ptr, align)
	}
	if !i.Mem.Contains(uint64(ptr), uint64(n)) {
		return 0, bad("the guest gave %d bytes at %#x, which is outside of its memory of %s", n, ptr, words.Bytes(i.Mem.Size))
	}
	return ptr, nil
}

// Donate is Allocate of memory that becomes a window. It does not count against the guest's limit: while the guest allocates it, its
// memory may grow by as much, and may stay as large. A guest that grows and does not give the memory is over its limit, which is an
// error; OverLimit is true then, and the guest must not continue.
func (i *Instance) Donate(n uint32) (uint32, error) {
	i.Mem.Donated += uint64(n)
	ptr, err := i.ask(n, windowAlign, "though a window does not count against its memory limit of ")
	if err != nil {
		i.TakeBack(n)
		return 0, err
	}
	if i.OverLimit() {
		return 0, &Error{Kind: env.FaultMemory, Call: hostabi.ExportAlloc, Reason: fmt.Sprintf("the guest has %s of its own besides windows of %s, its memory limit is %s",
			words.Bytes(i.Mem.Size-i.Mem.Donated), words.Bytes(i.Mem.Donated), words.Bytes(i.Mem.Limit))}
	}
	return ptr, nil
}

// TakeBack has n bytes that were a window, or did not become one, count against the guest's limit again.
func (i *Instance) TakeBack(n uint32) { i.Mem.Donated -= uint64(n) }

// OverLimit reports whether the guest has more memory of its own than its limit: it had more windows, or kept memory that it got for
// one. Memory cannot shrink.
func (i *Instance) OverLimit() bool { return i.Mem.Size > i.Mem.Limit+i.Mem.Donated }

// bounds describes the limit, and the end of the memory if that is lower.
func (i *Instance) bounds() string {
	limit := words.Bytes(i.Mem.Limit)
	if end := min(i.Mem.Most(), i.module.File.MemoryMax); end < i.Mem.Limit+i.Mem.Donated {
		return limit + ", and its memory ends at " + words.Bytes(end)
	}
	return limit
}

// Overlap reports whether two pieces of guest memory have a byte in common.
func Overlap(p, n, q, m uint32) bool {
	return uint64(p) < uint64(q)+uint64(m) && uint64(q) < uint64(p)+uint64(n)
}

// BadMemory is the error of a guest that gave memory which overlaps something else.
func BadMemory(ptr, n uint32, what string) error {
	return &Error{Kind: env.FaultMemory, Call: hostabi.ExportAlloc, Wrong: true,
		Reason: fmt.Sprintf("the guest gave %d bytes at %#x, which overlap %s", n, ptr, what)}
}

// windowAlign is the alignment required of donated memory: a page on every machine.
const windowAlign = 65536

// ErrorBytes is the size of the buffer for the guest's error text.
const ErrorBytes = 256

// TakeErrorText asks the guest for the memory of error texts. Instances of components do so before they begin.
func (i *Instance) TakeErrorText() (err error) {
	i.ErrorPtr, err = i.Allocate(ErrorBytes, 16)
	return err
}

// RowAlign returns the largest power of two, up to a cache line, that every row of a column begins at a multiple of. The strides of
// environments and steps are in bytes; a single row has none of steps.
func RowAlign(offset, strideEnv, strideT, rows int) uint32 {
	const line = 64
	places := uint32(offset | strideEnv | line)
	if rows > 1 {
		places |= uint32(strideT)
	}
	return places & -places
}

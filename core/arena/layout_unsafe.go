package arena

import (
	"sync/atomic"
	"unsafe"
)

// view is the typed form of a segment's header pages.
type view struct {
	header *header
	blocks []blockHeader
	hints  []atomic.Uint64 // bit set: the block was free when somebody last looked
}

// viewOf overlays the header pages of mem, which the caller has checked to be page aligned and l.total long.
// The structs hold no Go pointers, and every field that two processes write is atomic and 8-byte aligned.
func viewOf(mem []byte, l layout) view {
	_ = mem[l.total-1]
	return view{
		header: (*header)(unsafe.Pointer(&mem[0])),
		blocks: unsafe.Slice((*blockHeader)(unsafe.Pointer(&mem[blockHeadersAt])), l.blocks),
		hints:  unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[l.hintsAt])), l.hints()),
	}
}

// aligned tells whether mem starts on a multiple of align, a power of two.
func aligned(mem []byte, align int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))&uintptr(align-1) == 0
}

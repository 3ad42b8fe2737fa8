package arena

import (
	"sync/atomic"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

// view is the typed form of a words segment.
type view struct {
	header *header
	blocks []blockHeader
	hints  []atomic.Uint64 // bit set: the block was free when last checked
}

// viewOf overlays a words segment, which the caller has checked to be page aligned and l.words long. The structs
// hold no Go pointers, and every field that two processes write is atomic and 8-byte aligned.
func viewOf(words []byte, l layout) view {
	_ = words[l.words-1]
	return view{
		header: (*header)(unsafe.Pointer(&words[0])),
		blocks: unsafe.Slice((*blockHeader)(unsafe.Pointer(&words[hostabi.ArenaBlocksAt])), l.blocks),
		hints:  unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&words[l.hintsAt])), l.hints()),
	}
}

// aligned reports whether mem starts on a multiple of align, a power of two.
func aligned(mem []byte, align int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))&uintptr(align-1) == 0
}

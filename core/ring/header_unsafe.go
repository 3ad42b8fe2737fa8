package ring

import (
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

// header is hostabi.RingHeader with the words that several processes write as atomics.
type header struct {
	_ structs.HostLayout

	magic     atomic.Uint64
	version   uint32
	kind      uint32
	cells     uint32
	cellBytes uint32
	payload   uint32
	_         uint32
	cellsAt   uint64
	total     uint64
	_         [80]byte
	tail      atomic.Uint64 // written by producers; publishes the cells before it
	_         [120]byte
	head      atomic.Uint64 // written by consumers; gives back the cells before it
	_         [120]byte
	notEmpty  atomic.Uint32
	_         [124]byte
	notFull   atomic.Uint32
	_         [124]byte
	closed    atomic.Uint32
	_         [124]byte
	// counters of system calls.
	emptyWaits atomic.Uint64
	fullWaits  atomic.Uint64
	emptyWakes atomic.Uint64
	fullWakes  atomic.Uint64
	_          [3296]byte
}

// headerAt returns the header that a segment begins with. The segment is at least as long, which its makers check,
// and aligned to pages.
func headerAt(mem []byte) *header {
	return (*header)(unsafe.Pointer(&mem[:hostabi.RingHeaderBytes][0]))
}

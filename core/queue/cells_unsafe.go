package queue

import (
	"structs"
	"sync/atomic"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

// cell is hostabi.RingCell. Its payload follows it.
type cell struct {
	_ structs.HostLayout

	ctl  atomic.Uint64 // passes ownership of the cell between producers and consumers
	len  uint32
	kind uint32
}

// cells are the cells of a queue: count of them, a power of two, each of the given size.
type cells struct {
	base  unsafe.Pointer
	mask  uint64
	bytes uintptr
}

// cellsAt returns the n cells of a queue. The slice expression is what keeps them inside of mem.
func cellsAt(mem []byte, n, bytes int) cells {
	body := mem[hostabi.RingHeaderBytes : hostabi.RingHeaderBytes+n*bytes]
	return cells{base: unsafe.Pointer(&body[0]), mask: uint64(n - 1), bytes: uintptr(bytes)}
}

// at returns the cell of a position, any position: the mask keeps it among the cells.
func (c *cells) at(pos uint64) *cell {
	return (*cell)(unsafe.Add(c.base, uintptr(pos&c.mask)*c.bytes))
}

// payload returns the first n bytes of a cell's payload. The caller has seen to it that n is at most the queue's
// payload, which fits its cells.
func (c *cell) payload(n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(c), hostabi.RingCellHeadBytes)), n)
}

// plainStore sets the control word without a barrier, for cells that are read only after a later atomic store has
// been seen: all but the first of a batch. It is aligned, so it is never seen in halves. The race detector does
// not know this order when a reader uses an outdated position and then notices, so under it the store is atomic.
func (c *cell) plainStore(word uint64) {
	if raceEnabled {
		c.ctl.Store(word)
		return
	}
	*(*uint64)(unsafe.Pointer(&c.ctl)) = word
}

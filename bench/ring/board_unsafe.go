package main

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/rlhost/rlhost/core/shm"
)

// board is the memory, other than the ring, that the processes of a mix share.
type board struct {
	ready atomic.Uint32 // processes that wait at the gate
	gate  atomic.Uint32 // futex: 0 while they wait
	got   outcome
}

// outcome is the result of the consumer.
type outcome struct {
	finished uint64 // ns on the monotonic clock
	sum      uint64 // of the payloads
	count    uint64
}

// boardOf returns the board in a segment, which is larger than one: the slice expression checks that.
func boardOf(seg *shm.Segment) *board {
	return (*board)(unsafe.Pointer(&seg.Bytes()[:unsafe.Sizeof(board{})][0]))
}

// boardBytes is how large the segment must be.
const boardBytes = int(unsafe.Sizeof(board{}))

// now returns the monotonic clock in nanoseconds, which is the same in all processes.
func now() uint64 {
	const clockMonotonic = 1
	var t syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&t)), 0)
	return uint64(t.Nano())
}

//go:build linux

package shm

import (
	"math"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2). They are not the PRIVATE ones, which wake only within one process.
const (
	futexWait = 0
	futexWake = 1
)

// Wait sleeps while the word, which may lie in a segment, holds the value seen: until Wake, until the time is up
// (CLOCK_MONOTONIC; negative: no limit), or for no reason at all. It does not say why it returned: check the
// condition and the clock, and wait again. It occupies one thread while it sleeps.
func Wait(word *atomic.Uint32, seen uint32, timeout time.Duration) {
	var limit *unix.Timespec
	if timeout >= 0 {
		t := unix.NsecToTimespec(int64(timeout))
		limit = &t
	}
	// Syscall and not RawSyscall: the runtime must know that this thread sleeps, or the next garbage collection
	// waits for it. word and limit stay where they are: a sleeping goroutine's stack is not moved during the call.
	_, _, _ = syscall.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(seen),
		uintptr(unsafe.Pointer(limit)), 0, 0)
}

// Yield gives the processor to another runnable thread, if there is one. It is for a thread that polls for
// something that another, perhaps on the same processor, is about to do.
func Yield() {
	_, _, _ = syscall.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) // it always succeeds, and sleeps no longer than a preemption
}

// Wake wakes all threads that sleep in Wait on this word, in any process.
func Wake(word *atomic.Uint32) { WakeSome(word, math.MaxInt32) }

// WakeSome wakes at most n of the threads that sleep in Wait on this word, the longest sleepers first, and returns
// how many it woke.
func WakeSome(word *atomic.Uint32, n int) int {
	// The call does not sleep, so the runtime need not know of it.
	woken, _, errno := syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake,
		uintptr(min(n, math.MaxInt32)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(woken)
}

//go:build !linux

package shm

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Wait sleeps for a moment: this system has no segments that another process could share, and a return without a
// reason is allowed.
func Wait(word *atomic.Uint32, seen uint32, timeout time.Duration) {
	if word.Load() != seen || timeout == 0 {
		return
	}
	const nap = time.Millisecond
	if timeout < 0 || timeout > nap {
		timeout = nap
	}
	time.Sleep(timeout)
}

// Yield lets other goroutines run.
func Yield() { runtime.Gosched() }

// Wake does nothing: waiters wake up by themselves.
func Wake(*atomic.Uint32) {}

// WakeSome does nothing and says so.
func WakeSome(*atomic.Uint32, int) int { return 0 }

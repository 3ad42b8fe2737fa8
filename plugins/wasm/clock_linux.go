package wasm

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the number of the thread that runs now, and how much processor time it has had.
func threadTime() (thread int, had time.Duration) {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0, 0
	}
	return unix.Gettid(), time.Duration(t.Nano())
}

package guest

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the number of the thread that runs now, and how much processor time it has had; 0 where the goroutine went to
// another thread in between.
func threadTime() (thread int, had time.Duration) {
	var t unix.Timespec
	thread = unix.Gettid()
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil || unix.Gettid() != thread {
		return 0, 0
	}
	return thread, time.Duration(t.Nano())
}

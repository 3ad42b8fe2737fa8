package ipc

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// WhenEnds calls fn on a goroutine of its own once a process has ended; at once if there is none of that number.
func WhenEnds(pid int, fn func()) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		go fn()
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	go func() {
		defer unix.Close(fd)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
				fn()
				return
			}
		}
	}()
	return nil
}

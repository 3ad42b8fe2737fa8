//go:build unix

package runs

import (
	"errors"
	"os"
	"syscall"
)

// processRuns reports whether there is a process of that number.
func processRuns(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// flock takes the exclusive lock of an open file; the kernel releases it when the process ends. Without wait it
// reports false if another holds it.
func flock(f *os.File, wait bool) (taken bool, err error) {
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

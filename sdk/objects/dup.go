package objects

import (
	"os"
	"syscall"
)

// dup returns a file of its own of what f has open, because shm.Open takes the one that it is given.
func dup(f *os.File) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return -1, err
	}
	syscall.CloseOnExec(fd)
	return fd, nil
}

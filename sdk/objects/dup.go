package objects

import (
	"os"
	"syscall"
)

// dup returns a duplicate of f's descriptor, because shm.Open becomes the owner of its argument.
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

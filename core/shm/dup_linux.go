package shm

import "golang.org/x/sys/unix"

// Dup returns another descriptor of an open file, which programs that are executed do not inherit.
func Dup(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0) }

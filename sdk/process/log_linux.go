package process

import "golang.org/x/sys/unix"

// redirect makes the file of standard output that of standard error.
func redirect() error { return unix.Dup3(unix.Stderr, unix.Stdout, 0) }

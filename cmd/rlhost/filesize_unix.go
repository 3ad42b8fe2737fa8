//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// keepFileSizeErrors makes a file that has reached its limit (ulimit -f) an error of the write, as a full disk is,
// and not the end of the process.
func keepFileSizeErrors() { signal.Ignore(syscall.SIGXFSZ) }

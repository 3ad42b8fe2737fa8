package testkit

import (
	"encoding/binary"
	"syscall"
	"testing"
)

// Opens begins to count how often a file is opened, by any process. What it returns reads the count, which then begins at 0 again.
func Opens(t testing.TB, path string) func() int {
	t.Helper()
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) }) // nothing is kept there
	// Of equal events in a row all but one are left out; the close between two opens keeps them apart.
	if _, err := syscall.InotifyAddWatch(fd, path, syscall.IN_OPEN|syscall.IN_CLOSE); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	return func() (opens int) {
		for {
			n, err := syscall.Read(fd, buf)
			if err == syscall.EAGAIN {
				return opens
			}
			if err != nil {
				t.Fatal(err)
			}
			for at := 0; at < n; at += syscall.SizeofInotifyEvent { // of a watched file events have no name behind them
				if binary.NativeEndian.Uint32(buf[at+4:])&syscall.IN_OPEN != 0 {
					opens++
				}
			}
		}
	}
}

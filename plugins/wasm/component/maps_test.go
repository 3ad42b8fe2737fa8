package component

import (
	"bufio"
	"fmt"
	"os"
	"testing"
	"unsafe"
)

// sameFile reports whether the first bytes of two pieces of memory are one byte of one file.
func sameFile(t testing.TB, a, b []byte) bool {
	t.Helper()
	return placeOf(t, a) == placeOf(t, b)
}

// filePlace is a byte of a mapped file.
type filePlace struct{ inode, offset uint64 }

// placeOf returns where the first byte of a piece of memory comes from, as the system tells it.
func placeOf(t testing.TB, piece []byte) (p filePlace) {
	t.Helper()
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(piece))))
	f, err := os.Open("/proc/self/maps")
	must(t, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var from, to, offset, inode uint64
		var flags, device string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d", &from, &to, &flags, &offset, &device, &inode); n == 6 && at >= from && at < to {
			return filePlace{inode, offset + at - from}
		}
	}
	t.Fatalf("no mapping at %#x", at)
	return p
}

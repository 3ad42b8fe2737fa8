package spawn

import (
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/shm"
)

func TestReadState_BelievesNoSize(t *testing.T) {
	seg, err := shm.Create("test", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer seg.Close()
	file := func() *os.File {
		fd, err := unix.Dup(seg.FD())
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "state")
		t.Cleanup(func() { f.Close() })
		return f
	}
	if b, err := readState(file(), 100, 1<<30); err != nil || len(b) != 100 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for _, size := range []int64{-1, int64(seg.Size()) + 1, math.MaxInt64} {
		if _, err := readState(file(), size, 1<<30); err == nil {
			t.Errorf("a state of %d bytes in a file of %d is taken", size, seg.Size())
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	if _, err := readState(r, 0, 1<<30); err == nil {
		t.Error("a pipe is taken for a state")
	}
}

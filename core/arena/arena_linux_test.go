package arena

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// mapped returns an arena in a sealed segment.
func mapped(t testing.TB, name string, blocks, blockBytes int) *Arena {
	t.Helper()
	a, err := New(Config{ID: 7, Name: name, Blocks: blocks, BlockBytes: blockBytes})
	ok(t, err)
	return a
}

func TestArena_SegmentCannotBeCut(t *testing.T) {
	a := mapped(t, "sealed", 2, 4096)
	for _, size := range []int64{0, 4096, 1 << 30} {
		if err := syscall.Ftruncate(a.FD(), size); !errors.Is(err, syscall.EPERM) {
			t.Errorf("ftruncate to %d = %v, want EPERM", size, err)
		}
	}
	ok(t, a.Close())
}

func TestBlockOffset_MapsAWindowOntoTheBlock(t *testing.T) {
	a := mapped(t, "window", 3, 5000)
	l, err := a.LoanBlock(2)
	ok(t, err)
	window, err := syscall.Mmap(a.FD(), a.BlockOffset(2), a.BlockBytes(), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	ok(t, err)
	defer syscall.Munmap(window)
	window[4999] = 42
	if got := l.Bytes()[4999]; got != 42 {
		t.Errorf("byte written through the window = %d, want 42", got)
	}
	l.Bytes()[0] = 24
	if window[0] != 24 {
		t.Errorf("byte read through the window = %d, want 24", window[0])
	}
	ok(t, l.Abort())
	ok(t, a.Close())
	if window[0] != 0 {
		t.Errorf("after Close the window reads %d, want 0", window[0])
	}
}

// inMaps reports whether a segment of that name is mapped.
func inMaps(t *testing.T, name string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	ok(t, err)
	return strings.Contains(string(text), "memfd:"+name)
}

func TestClose_GivesMemoryBack(t *testing.T) {
	const name = "arena that is soon gone"
	a := mapped(t, name, 16, 1<<16)
	memory := func() int64 {
		var s syscall.Stat_t
		ok(t, syscall.Fstat(a.FD(), &s))
		return s.Blocks * 512
	}
	if got := memory(); got < 16<<16 {
		t.Errorf("an open arena of %d bytes has %d in memory", 16<<16, got)
	}
	ok(t, a.Close())
	if got := memory(); got > 0 {
		t.Errorf("a closed arena has %d bytes in memory, want none", got)
	}
	if !inMaps(t, name) {
		t.Error("the header of a closed arena that is still in use is not mapped")
	}
	runtime.KeepAlive(a)
	for range 1000 { // clean-up runs some time after a collection
		runtime.GC()
		if !inMaps(t, name) {
			return
		}
	}
	t.Error("an arena that nobody can reach is still mapped")
}

func TestClose_OverlappingUseIsAnErrorAndNotAFault(t *testing.T) {
	for range 8 {
		a := mapped(t, "closing", 4, 4096)
		h := commit(t, a)
		var users sync.WaitGroup
		started := make(chan struct{}, 4)
		for range cap(started) {
			users.Go(func() {
				for i := 0; ; i++ {
					if i == 10 {
						started <- struct{}{}
					}
					a.Stats()
					if lease, err := a.Lease(h); err == nil {
						_ = lease.Bytes()[0]
						if err := lease.Release(); err != nil {
							t.Errorf("Release = %v", err)
						}
					}
					_ = a.Retain(hostabi.MakeHandle(7, 1, 1<<30))
					l, err := a.Loan()
					if errors.Is(err, ErrClosed) {
						return
					}
					if err == nil {
						l.Bytes()[4095] = 1
						if err := l.Abort(); err != nil {
							t.Errorf("Abort = %v", err)
						}
					}
				}
			})
		}
		for range cap(started) {
			<-started
		}
		ok(t, a.Release(h))
		for err := a.Close(); err != nil; err = a.Close() {
			if !errors.Is(err, ErrOpen) {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
		users.Wait()
		runtime.GC()
	}
}

package arena

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// dup returns a duplicate of a file, as a socket would deliver it.
func dup(t testing.TB, fd int) int {
	t.Helper()
	fd, err := syscall.Dup(fd)
	ok(t, err)
	return fd
}

// sent returns the description and files with which another process attaches to a.
func sent(t testing.TB, a *Arena) Shared {
	t.Helper()
	s := a.Share()
	s.WordsFD, s.DataFD = dup(t, s.WordsFD), dup(t, s.DataFD)
	return s
}

// open reports whether a file descriptor is in use.
func open(fd int) bool {
	var s syscall.Stat_t
	return syscall.Fstat(fd, &s) == nil
}

func TestAttach_WorksOnTheSameBlocks(t *testing.T) {
	a, err := New(Config{ID: 7, Name: "shared", Blocks: 3, BlockBytes: 5000, Schema: named("what it is")})
	ok(t, err)
	other, err := Attach(sent(t, a), otherHolder)
	ok(t, err)
	if other.ID() != 7 || other.Name() != "shared" || other.Schema() != named("what it is") || other.Blocks() != 3 || other.BlockBytes() != 5000 {
		t.Errorf("attached %d %q %v, %d × %d", other.ID(), other.Name(), other.Schema(), other.Blocks(), other.BlockBytes())
	}
	l := loan(t, other)
	stamp(l.Bytes(), l.Handle())
	h, err := l.Commit()
	ok(t, err)
	lease, err := a.Lease(h)
	ok(t, err)
	if !stamped(lease.Bytes(), h) {
		t.Error("the host reads something else than was written")
	}
	ok(t, other.Release(h))
	if err := other.Close(); err != nil {
		t.Errorf("Close of a view without claims = %v", err)
	}
	if _, err := other.Loan(); !errors.Is(err, ErrClosed) {
		t.Errorf("Loan of a closed view = %v, want ErrClosed", err)
	}
	if err := other.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close = %v, want ErrClosed", err)
	}
	ok(t, lease.Release())
	if s := a.Stats(); s.Free != 3 {
		t.Errorf("the host's arena has %+v after a view was closed, want 3 free", s)
	}
	ok(t, a.Close())
}

func TestAttach_ViewWithClaimsStaysOpen(t *testing.T) {
	a := mapped(t, "claimed", 3, 4096)
	other, err := Attach(sent(t, a), otherHolder)
	ok(t, err)
	l, h := loan(t, other), commit(t, other)
	mine := commit(t, other)
	ok(t, a.Retain(mine))
	ok(t, other.Release(mine))
	for _, end := range []func(){func() { ok(t, l.Abort()) }, func() { ok(t, other.Release(h)) }} {
		if err := other.Close(); !errors.Is(err, ErrOpen) {
			t.Errorf("Close with claims out = %v, want ErrOpen", err)
		}
		end()
	}
	ok(t, other.Close())
	ok(t, a.Release(mine))
	ok(t, a.Close())
}

func TestAttach_RefusesFilesThatDifferFromTheDescription(t *testing.T) {
	a := mapped(t, "announced", 3, 5000)
	cases := map[string]func(*Shared){
		"another id":       func(s *Shared) { s.ID++ },
		"more blocks":      func(s *Shared) { s.Blocks = 4 },
		"no blocks":        func(s *Shared) { s.Blocks = 0 },
		"negative blocks":  func(s *Shared) { s.Blocks = -1 },
		"endless blocks":   func(s *Shared) { s.Blocks = 1 << 62 },
		"larger blocks":    func(s *Shared) { s.BlockBytes = 1 << 40 },
		"overflow":         func(s *Shared) { s.BlockBytes = 1<<63 - 1 },
		"negative bytes":   func(s *Shared) { s.BlockBytes = -1 },
		"slightly smaller": func(s *Shared) { s.BlockBytes = 4999 },
		"files swapped":    func(s *Shared) { s.WordsFD, s.DataFD = s.DataFD, s.WordsFD },
		"one file twice":   func(s *Shared) { _ = syscall.Close(s.DataFD); s.DataFD = s.WordsFD },
		"no words":         func(s *Shared) { _ = syscall.Close(s.WordsFD); s.WordsFD = -1 },
		"no data":          func(s *Shared) { _ = syscall.Close(s.DataFD); s.DataFD = -1 },
		"a file that is no segment": func(s *Shared) {
			_ = syscall.Close(s.DataFD)
			f, err := os.CreateTemp(t.TempDir(), "")
			ok(t, err)
			defer f.Close()
			ok(t, f.Truncate(3*8192))
			s.DataFD = dup(t, int(f.Fd()))
		},
	}
	for name, change := range cases {
		s := sent(t, a)
		change(&s)
		if _, err := Attach(s, otherHolder); err == nil {
			t.Errorf("%s: attached", name)
		}
		if open(s.WordsFD) || open(s.DataFD) {
			t.Errorf("%s: a file is still open", name)
		}
	}
	for _, holder := range []int{-1, hostabi.ArenaHost, hostabi.MaxHolder + 1} {
		s := sent(t, a)
		if _, err := Attach(s, holder); err == nil || open(s.WordsFD) || open(s.DataFD) {
			t.Errorf("holder %d: %v, want an error and closed files", holder, err)
		}
	}
	spoilt := sent(t, a)
	a.view.header.version = 99
	if _, err := Attach(spoilt, otherHolder); !errors.Is(err, ErrLayout) {
		t.Errorf("words of another version: %v, want ErrLayout", err)
	}
	if view, err := Attach(sent(t, a), otherHolder); err != nil {
		t.Errorf("Attach after the host has shared the arena again = %v", err)
	} else {
		ok(t, view.Close())
	}
	ok(t, a.Close())
}

func TestAttach_UnusedViewIsUnmapped(t *testing.T) {
	a := mapped(t, "view that is soon gone", 2, 4096)
	s := sent(t, a)
	other, err := Attach(s, otherHolder)
	ok(t, err)
	ok(t, other.Close())
	runtime.KeepAlive(other)
	for range 1000 {
		runtime.GC()
		if !open(s.WordsFD) && !open(s.DataFD) {
			ok(t, a.Close())
			return
		}
	}
	t.Error("the files of a view that nobody can reach are still open")
}

func TestReadOnly_OnlyTheMakerWrites(t *testing.T) {
	a, err := New(Config{ID: 7, Name: "read only", Blocks: 2, BlockBytes: 4096, ReadOnly: true})
	ok(t, err)
	s := sent(t, a)
	if !s.ReadOnly {
		t.Error("Share does not say that the arena is read only")
	}
	lie := sent(t, a)
	lie.ReadOnly = false
	if _, err := Attach(lie, otherHolder); !errors.Is(err, shm.ErrSeal) {
		t.Errorf("Attach for writing = %v, want ErrSeal", err)
	}
	if _, err := syscall.Mmap(s.DataFD, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); !errors.Is(err, syscall.EPERM) {
		t.Errorf("mapping for writing = %v, want EPERM", err)
	}
	other, err := Attach(s, otherHolder)
	ok(t, err)
	if err := syscall.Mprotect(other.data.Bytes(), syscall.PROT_READ|syscall.PROT_WRITE); err == nil {
		t.Error("a mapping for reading could be made writable")
	}
	l := loan(t, a)
	copy(l.Bytes(), "by the maker")
	h, err := l.Commit()
	ok(t, err)
	lease, err := other.Lease(h)
	ok(t, err)
	if got := string(lease.Bytes()[:12]); got != "by the maker" {
		t.Errorf("the reader sees %q", got)
	}
	_, loanErr := other.Loan()
	_, blockErr := other.LoanBlock(1)
	_, partErr := other.Loaned(loan(t, a).Handle())
	for _, err := range []error{loanErr, blockErr, partErr} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("a writer's request = %v, want ErrReadOnly", err)
		}
	}
	ok(t, a.Release(h))
	ok(t, lease.Release()) // the last claim: the block becomes free without a write to it
	if s := a.Stats(); s.Free != 1 || s.Write != 1 {
		t.Errorf("after the reader's release: %+v", s)
	}
	ok(t, other.Close())
}

func TestReadOnly_CloseLeavesTheMemoryToItsReaders(t *testing.T) {
	a, err := New(Config{ID: 7, Name: "read only", Blocks: 2, BlockBytes: 4096, ReadOnly: true})
	ok(t, err)
	ok(t, a.Close())
}

func ExampleAttach() {
	host, _ := New(Config{ID: 1, Name: "example", Blocks: 4, BlockBytes: 4096})
	shared := host.Share() // goes to another process with duplicates of its two files
	shared.WordsFD, _ = syscall.Dup(shared.WordsFD)
	shared.DataFD, _ = syscall.Dup(shared.DataFD)

	plugin, _ := Attach(shared, 1)
	loan, _ := plugin.Loan()
	copy(loan.Bytes(), "hello")
	handle, _ := loan.Commit()

	lease, _ := host.Lease(handle)
	fmt.Printf("%s\n", lease.Bytes()[:5])
	// Output: hello
}

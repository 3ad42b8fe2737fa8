package shm

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// again returns a second descriptor of a file, as another process would have it.
func again(t testing.TB, fd int) int {
	t.Helper()
	other, err := unix.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// isOpen reports whether a descriptor is open.
func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

func TestOpen_SeesTheSameMemory(t *testing.T) {
	s := create(t, PageSize())
	defer s.Close()
	s.Bytes()[7] = 42
	for _, access := range []Access{ReadWrite, ReadOnly} {
		other, err := Open(again(t, s.FD()), access)
		if err != nil {
			t.Fatal(err)
		}
		if other.Size() != s.Size() || other.Bytes()[7] != 42 {
			t.Errorf("size %d, byte %d; want %d, 42", other.Size(), other.Bytes()[7], s.Size())
		}
		if access == ReadWrite {
			other.Bytes()[8] = 43
		}
		fd := other.FD()
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("file descriptor flags = %#x, %v: want close on exec", flags, err)
		}
		if err := other.Close(); err != nil || isOpen(fd) {
			t.Errorf("Close = %v, file still open %v", err, isOpen(fd))
		}
	}
	if s.Bytes()[8] != 43 {
		t.Error("a write through the second mapping does not show in the first")
	}
}

// memoryFile makes a memory file as a careless or hostile peer would.
func memoryFile(t testing.TB, size int64, seals int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("peer", unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, size); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestOpen_RefusesWhatCouldHurt(t *testing.T) {
	ordinary, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer ordinary.Close()
	page := int64(PageSize())
	for _, c := range []struct {
		name string
		fd   int
		want error
	}{
		{"no seals", memoryFile(t, page, 0), ErrSeal},
		{"can shrink", memoryFile(t, page, unix.F_SEAL_GROW), ErrSeal},
		{"can grow", memoryFile(t, page, unix.F_SEAL_SHRINK), ErrSeal},
		{"cannot be written", memoryFile(t, page, sizeSeals|unix.F_SEAL_WRITE), ErrSeal},
		{"empty", memoryFile(t, 0, sizeSeals), nil},
		{"an exabyte of holes", memoryFile(t, 1<<60, sizeSeals), ErrMemory},
		{"ordinary file", again(t, int(ordinary.Fd())), ErrSeal},
		{"no file", 1 << 20, ErrSeal},
	} {
		s, err := Open(c.fd, ReadWrite)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: Open = %v, %v; want %v", c.name, s, err, c.want)
		}
		if isOpen(c.fd) {
			t.Errorf("%s: the file is still open", c.name)
		}
	}
}

func TestCreateReadOnly_OnlyTheCreatorWrites(t *testing.T) {
	s, err := CreateReadOnly("weights", PageSize())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := Open(again(t, s.FD()), ReadWrite); !errors.Is(err, ErrSeal) {
		t.Errorf("Open for writing = %v, want ErrSeal", err)
	}
	if _, err := unix.Mmap(s.FD(), 0, PageSize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); !errors.Is(err, unix.EPERM) {
		t.Errorf("a writable mapping = %v, want EPERM", err)
	}
	if _, err := unix.Write(s.FD(), []byte{1}); !errors.Is(err, unix.EPERM) {
		t.Errorf("a write to the file = %v, want EPERM", err)
	}
	reader, err := Open(again(t, s.FD()), ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := unix.Mprotect(reader.Bytes(), unix.PROT_READ|unix.PROT_WRITE); !errors.Is(err, unix.EACCES) {
		t.Errorf("mprotect of a reader's mapping = %v, want EACCES", err)
	}
	s.Bytes()[3] = 9
	if reader.Bytes()[3] != 9 {
		t.Error("the creator's write does not show")
	}
	for _, size := range []int64{0, int64(2 * PageSize())} {
		if err := unix.Ftruncate(s.FD(), size); !errors.Is(err, unix.EPERM) {
			t.Errorf("ftruncate to %d = %v, want EPERM", size, err)
		}
	}
}

func TestSegments_AreNotInCoreDumps(t *testing.T) {
	s, err := Create("not in core dumps", PageSize())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	readOnly, err := CreateReadOnly("not in core dumps", PageSize())
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	for _, access := range []Access{ReadWrite, ReadOnly} {
		other, err := Open(again(t, s.FD()), access)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	mappings, inside := 0, false
	for line := range strings.Lines(string(smaps)) {
		switch {
		case strings.Contains(line, "not in core dumps"):
			inside = true
			mappings++
		case inside && strings.HasPrefix(line, "VmFlags:"):
			inside = false
			if !strings.Contains(line+" ", " dd ") {
				t.Errorf("mapping %d has the flags %q, want dd among them", mappings, strings.TrimSpace(line))
			}
		}
	}
	if mappings != 4 {
		t.Errorf("%d mappings found, want 4", mappings)
	}
}

package shm

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func create(t *testing.T, bytes int) *Segment {
	t.Helper()
	s, err := Create("test", bytes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCreate_IsSealed(t *testing.T) {
	s := create(t, 3*PageSize()-1)
	defer s.Close()
	if s.Size() != 3*PageSize() {
		t.Errorf("size = %d, want %d", s.Size(), 3*PageSize())
	}
	for _, size := range []int{0, s.Size() - PageSize(), s.Size() + PageSize()} {
		if err := unix.Ftruncate(s.FD(), int64(size)); !errors.Is(err, unix.EPERM) {
			t.Errorf("ftruncate to %d = %v, want EPERM", size, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(s.FD()), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); !errors.Is(err, unix.EPERM) {
		t.Errorf("adding a seal = %v, want EPERM", err)
	}
	flags, err := unix.FcntlInt(uintptr(s.FD()), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("file descriptor flags = %#x, %v: want close on exec", flags, err)
	}
}

// resident returns how much memory the segment's file has.
func resident(t *testing.T, s *Segment) int64 {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Fstat(s.FD(), &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Blocks * 512
}

func TestCreate_HasAllPagesAndDiscardReturnsThem(t *testing.T) {
	s := create(t, populateStep+populateStep/2)
	defer s.Close()
	if got := resident(t, s); got < int64(s.Size()) {
		t.Errorf("a new segment of %d bytes has %d in memory", s.Size(), got)
	}
	s.Bytes()[0], s.Bytes()[PageSize()], s.Bytes()[s.Size()-1] = 1, 2, 3
	if err := s.Discard(PageSize()); err != nil {
		t.Fatal(err)
	}
	if got := resident(t, s); got > int64(PageSize()) {
		t.Errorf("after Discard %d bytes are in memory, want one page", got)
	}
	if got := [3]byte{s.Bytes()[0], s.Bytes()[PageSize()], s.Bytes()[s.Size()-1]}; got != [3]byte{1, 0, 0} {
		t.Errorf("after Discard the bytes are %v, want 1 0 0", got)
	}
	if err := s.Discard(s.Size()); err != nil {
		t.Errorf("Discard of nothing = %v", err)
	}
	for _, from := range []int{-PageSize(), 1, s.Size() + PageSize()} {
		if err := s.Discard(from); err == nil {
			t.Errorf("Discard(%d) succeeded", from)
		}
	}
}

func TestFD_MapsWindowsOntoTheSameMemory(t *testing.T) {
	s := create(t, 4*PageSize())
	defer s.Close()
	window, err := unix.Mmap(s.FD(), int64(2*PageSize()), PageSize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(window)
	window[5] = 42
	if got := s.Bytes()[2*PageSize()+5]; got != 42 {
		t.Errorf("byte written through the window = %d, want 42", got)
	}
}

func TestClose_ReturnsFileAndMapping(t *testing.T) {
	s, err := Create("segment that is soon gone", PageSize())
	if err != nil {
		t.Fatal(err)
	}
	maps := func() bool {
		text, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "segment that is soon gone")
	}
	if !maps() {
		t.Error("the segment's name is not in /proc/self/maps")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if maps() {
		t.Error("a closed segment is still mapped")
	}
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close = %v, want ErrClosed", err)
	}
	if err := s.Discard(0); !errors.Is(err, ErrClosed) {
		t.Errorf("Discard after Close = %v, want ErrClosed", err)
	}
}

func TestCreate_RefusesWhatCannotBeHad(t *testing.T) {
	for _, bytes := range []int{math.MaxInt, 1 << 50, int(min(availableMemory("/"), 1<<60)) + 1<<30} {
		if _, err := Create("huge", bytes); !errors.Is(err, ErrMemory) {
			t.Errorf("Create of %d bytes = %v, want ErrMemory", bytes, err)
		}
	}
	for _, bytes := range []int{0, -5} {
		if _, err := Create("none", bytes); err == nil {
			t.Errorf("Create of %d bytes succeeded", bytes)
		}
	}
	for _, name := range []string{strings.Repeat("x", maxName+1), "a\x00b"} {
		if _, err := Create(name, 1); err == nil {
			t.Errorf("Create(%.10q) succeeded", name)
		}
	}
	if s, err := Create(strings.Repeat("x", maxName), 1); err != nil {
		t.Errorf("Create with the longest name: %v", err)
	} else if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// withLimit runs f while a resource of this process is limited.
func withLimit(t *testing.T, resource int, limit uint64, f func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(resource, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.Setrlimit(resource, &old); err != nil {
		t.Fatal(err)
	}
}

func TestCreate_LimitsOfTheProcessAreNamed(t *testing.T) {
	var fileErr, openErr error
	withLimit(t, unix.RLIMIT_FSIZE, 1<<20, func() { _, fileErr = Create("large", 1<<20+1) })
	if !errors.Is(fileErr, ErrMemory) || !strings.Contains(fileErr.Error(), "ulimit -f") {
		t.Errorf("beyond the file size limit: %v, want a hint at ulimit -f", fileErr)
	}
	withLimit(t, unix.RLIMIT_NOFILE, 0, func() { _, openErr = Create("file", 1) })
	if !errors.Is(openErr, unix.EMFILE) || !strings.Contains(openErr.Error(), "ulimit -n") {
		t.Errorf("beyond the open file limit: %v, want a hint at ulimit -n", openErr)
	}
}

func TestExplain_KeepsTheCauseAndNamesTheKind(t *testing.T) {
	for _, c := range []struct {
		errno unix.Errno
		kind  error
	}{
		{unix.ENOSYS, ErrUnsupported}, {unix.ENOMEM, ErrMemory}, {unix.ENOSPC, ErrMemory}, {unix.EFBIG, ErrMemory},
		{unix.EMFILE, unix.EMFILE}, {unix.ENFILE, unix.ENFILE}, {unix.EPERM, unix.EPERM}, {unix.EIO, unix.EIO},
	} {
		if err := explain(c.errno); !errors.Is(err, c.errno) || !errors.Is(err, c.kind) {
			t.Errorf("explain(%v) = %v, want it to be %v", c.errno, err, c.kind)
		}
	}
}

// writeFiles makes the given files under a new root.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestAvailableMemory_IsTheTightestLimit(t *testing.T) {
	const v1, v2 = "sys/fs/cgroup/memory/", "sys/fs/cgroup/"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  uint64
	}{
		{"nothing known", nil, math.MaxUint64},
		{"machine only", map[string]string{"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    7 kB\n"}, 7 << 10},
		{"group of version 2", map[string]string{
			"proc/meminfo":        "MemAvailable: 1000 kB\n",
			"proc/self/cgroup":    "0::/a/b\n",
			v2 + "a/b/memory.max": "1000\n", v2 + "a/b/memory.current": "400\n",
			v2 + "a/b/memory.stat": "anon 300\nactive_file 50\ninactive_file 20\n",
		}, 670},
		{"parent group is tighter", map[string]string{
			"proc/self/cgroup":      "0::/a/b\n",
			v2 + "a/b/memory.max":   "max\n",
			v2 + "a/memory.max":     "100\n",
			v2 + "a/memory.current": "30\n",
		}, 70},
		{"group of version 1", map[string]string{
			"proc/self/cgroup":               "11:cpu:/\n4:memory:/job\n",
			v1 + "job/memory.limit_in_bytes": "500\n",
			v1 + "job/memory.usage_in_bytes": "450\n",
			v1 + "job/memory.stat":           "total_inactive_file 100\n",
			v1 + "memory.limit_in_bytes":     "9223372036854771712\n",
		}, 150},
		{"container sees the group as root", map[string]string{
			"proc/self/cgroup":    "0::/not/mounted/here\n",
			v2 + "memory.max":     "64\n",
			v2 + "memory.current": "200\n",
		}, 0},
		{"nonsense is no limit", map[string]string{
			"proc/meminfo": "MemAvailable: many kB\n", "proc/self/cgroup": "x\n0::\n", v2 + "memory.max": "-1",
		}, math.MaxUint64},
	} {
		if got := availableMemory(writeFiles(t, c.files)); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.name, got, c.want)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	const size = 16 << 20
	b.SetBytes(size)
	for b.Loop() {
		s, err := Create("bench", size)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

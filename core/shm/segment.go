package shm

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
)

// Errors that a caller may want to distinguish.
var (
	// ErrMemory: there is not enough memory for the segment, or a limit of this process forbids it.
	ErrMemory = errors.New("not enough memory")
	// ErrUnsupported: this system has no sealed memory files.
	ErrUnsupported = errors.New("rlhost needs Linux: memfd with file seals is missing")
	// ErrSeal: the file could be truncated under a mapping of it, or its seals forbid the request.
	ErrSeal = errors.New("the file lacks the seals of a segment")
	// ErrClosed: the segment has been closed already.
	ErrClosed = errors.New("segment is closed")
)

// Access is what a mapping allows.
type Access int

// Kinds of access.
const (
	ReadWrite Access = iota
	ReadOnly         // a write to Bytes ends the process with a signal
)

// Take returns the descriptor of a file, of which only that stays open. The caller owns it.
func Take(f *os.File) (int, error) {
	fd, err := Dup(int(f.Fd()))
	return fd, errors.Join(err, f.Close())
}

// Segment is a piece of memory of fixed size, zero when it is created. It belongs to the caller that made it and is
// valid until Close. Bytes, FD and Size may be called from any goroutine; access to the bytes is up to the caller.
type Segment struct {
	name string
	mem  []byte
	fd   int // -1: ordinary Go memory

	mu     sync.Mutex
	closed bool
}

// Heap returns a segment of at least the given number of bytes of ordinary Go memory, aligned to pages as a
// mapping would be. It has no file, so no other process and no guest window can share it; it exists for tests
// under the race detector, which does not look at mapped memory.
func Heap(bytes int) (*Segment, error) {
	size, err := roundUp(bytes)
	if err != nil {
		return nil, fmt.Errorf("heap segment: %w", err)
	}
	if err := checkMemory(size); err != nil {
		return nil, fmt.Errorf("heap segment of %d bytes: %w", size, err)
	}
	return &Segment{name: "heap", mem: alignedBytes(size, PageSize()), fd: -1}, nil
}

// PageSize returns the size of a page of memory in bytes. The offset of a mapping must be a multiple of it.
func PageSize() int { return os.Getpagesize() }

// Name returns the name that the segment was created with.
func (s *Segment) Name() string { return s.name }

// Bytes returns the whole segment. The slice must not be used after Close.
func (s *Segment) Bytes() []byte { return s.mem }

// FD returns the file to map windows from, or -1 for a heap segment. It belongs to the segment: duplicate it to
// keep it longer, and never close it.
func (s *Segment) FD() int { return s.fd }

// Size returns the size of the segment in bytes: a multiple of PageSize, unless Open got a file that is not.
func (s *Segment) Size() int { return len(s.mem) }

// Discard returns the memory of bytes [from, Size) to the system; they read as zero afterwards, here and in
// every other mapping. The mapping itself stays valid. from must be a multiple of PageSize.
func (s *Segment) Discard(from int) error {
	if from < 0 || from > s.Size() || from%PageSize() != 0 {
		return fmt.Errorf("segment %q: discard from %d: not a page of it", s.name, from)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("segment %q: %w", s.name, ErrClosed)
	}
	if s.fd < 0 {
		clear(s.mem[from:])
		return nil
	}
	if from == s.Size() {
		return nil
	}
	return s.discardPages(from)
}

// Close unmaps the segment and closes its file. The memory is gone when no other mapping of the file is left.
// A second Close returns ErrClosed.
func (s *Segment) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("segment %q: %w", s.name, ErrClosed)
	}
	s.closed = true
	if s.fd < 0 {
		return nil // the garbage collector takes it when the last slice is gone
	}
	return s.unmap()
}

// roundUp returns n rounded up to whole pages.
func roundUp(n int) (int, error) {
	page := PageSize()
	if n <= 0 {
		return 0, fmt.Errorf("size of %d bytes: must be positive", n)
	}
	if n > math.MaxInt-page {
		return 0, fmt.Errorf("size of %d bytes: %w", n, ErrMemory)
	}
	return (n + page - 1) / page * page, nil
}

//go:build !linux

package shm

import "fmt"

// Create returns ErrUnsupported: sealed memory files exist on Linux only.
func Create(name string, _ int) (*Segment, error) {
	return nil, fmt.Errorf("segment %q: %w", name, ErrUnsupported)
}

// CreateReadOnly returns ErrUnsupported.
func CreateReadOnly(name string, bytes int) (*Segment, error) { return Create(name, bytes) }

// Open returns ErrUnsupported. The file stays open: on this system it cannot be a segment's.
func Open(fd int, _ Access) (*Segment, error) {
	return nil, fmt.Errorf("segment of file %d: %w", fd, ErrUnsupported)
}

func (s *Segment) discardPages(int) error { return ErrUnsupported }

func (s *Segment) unmap() error { return ErrUnsupported }

func checkMemory(int) error { return nil }

// Dup returns ErrUnsupported.
func Dup(int) (int, error) { return 0, ErrUnsupported }

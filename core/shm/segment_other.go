//go:build !linux

package shm

import "fmt"

// Create returns ErrUnsupported: sealed memory files exist on Linux only.
func Create(name string, _ int) (*Segment, error) {
	return nil, fmt.Errorf("segment %q: %w", name, ErrUnsupported)
}

func (s *Segment) discardPages(int) error { return ErrUnsupported }

func (s *Segment) unmap() error { return ErrUnsupported }

func checkMemory(int) error { return nil }

package shm

import (
	"errors"
	"math"
	"testing"
	"unsafe"
)

func TestHeap_IsAlignedZeroAndWithoutFile(t *testing.T) {
	for _, bytes := range []int{1, 4096, 4097, 1 << 20} {
		s, err := Heap(bytes)
		if err != nil {
			t.Fatalf("Heap(%d): %v", bytes, err)
		}
		if s.FD() != -1 {
			t.Errorf("Heap(%d).FD() = %d, want -1", bytes, s.FD())
		}
		if s.Size() < bytes || s.Size()%PageSize() != 0 || len(s.Bytes()) != s.Size() || cap(s.Bytes()) != s.Size() {
			t.Errorf("Heap(%d): size %d, %d bytes, capacity %d", bytes, s.Size(), len(s.Bytes()), cap(s.Bytes()))
		}
		if at := uintptr(unsafe.Pointer(&s.Bytes()[0])); at%uintptr(PageSize()) != 0 {
			t.Errorf("Heap(%d) starts at %#x, want a page boundary", bytes, at)
		}
		s.Bytes()[s.Size()-1] = 1
		if err := s.Discard(0); err != nil || s.Bytes()[s.Size()-1] != 0 {
			t.Errorf("Discard: %v, last byte %d, want 0", err, s.Bytes()[s.Size()-1])
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

func TestHeap_ImpossibleSizesAreErrors(t *testing.T) {
	for _, bytes := range []int{0, -1, math.MinInt} {
		if _, err := Heap(bytes); err == nil {
			t.Errorf("Heap(%d) succeeded", bytes)
		}
	}
	for _, bytes := range []int{math.MaxInt, math.MaxInt - 1<<16, math.MaxInt / 2} {
		if _, err := Heap(bytes); !errors.Is(err, ErrMemory) {
			t.Errorf("Heap(%d) = %v, want ErrMemory", bytes, err)
		}
	}
}

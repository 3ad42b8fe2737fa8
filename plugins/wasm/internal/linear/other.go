//go:build !linux

package linear

import (
	"crypto/sha256"
	"errors"

	"github.com/tetratelabs/wazero/experimental"
)

// Memory is a placeholder where there is no memfd to map: such a host runs no guests.
type Memory struct {
	Size, Limit, Donated uint64
	Refused, Broken      bool
	imaged               uint64
}

// New reports that it is not supported.
func New(_, _ uint64) (*Memory, error) {
	return nil, errors.New("WebAssembly environments need Linux")
}

func (m *Memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }
func (m *Memory) Reallocate(uint64) []byte                       { return nil }
func (m *Memory) Free()                                          {}
func (m *Memory) Bytes() []byte                                  { return nil }
func (m *Memory) Contains(_, _ uint64) bool                      { return false }
func (m *Memory) MapShared(_ int, _ int64, _, _ uint64) error    { return errors.ErrUnsupported }
func (m *Memory) MapPrivate(_ int, _ int64, _, _ uint64) error   { return errors.ErrUnsupported }
func (m *Memory) MapZero(_, _ uint64) error                      { return errors.ErrUnsupported }
func (m *Memory) mapImage(_ int, _, _ uint64) error              { return errors.ErrUnsupported }
func (m *Memory) untouched() []bool                              { return nil }
func (m *Memory) Touch()                                         {}
func (m *Memory) Release()                                       {}
func (m *Memory) Most() uint64                                   { return 0 }

type imageFile struct {
	fd      int
	content []byte
	sum     [sha256.Size]byte
}

func newImageFile([]byte) (*imageFile, error) { return nil, errors.ErrUnsupported }

func (f *imageFile) close() {}

// Sealed reports that it is not supported.
func Sealed(int, int64) error { return errors.ErrUnsupported }

// Segment is a placeholder.
type Segment struct{}

// SegmentOf reports that it is not supported.
func SegmentOf(int) (Segment, error) { return Segment{}, errors.ErrUnsupported }

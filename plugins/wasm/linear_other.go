//go:build !linux

package wasm

import (
	"errors"

	"github.com/tetratelabs/wazero/experimental"
)

const hostPage = 4096

// linear is a placeholder where there is no memfd to map: such a host runs no guests.
type linear struct {
	size, limit uint64
	refused     bool
	broken      bool
}

func newLinear(_, _ uint64) (*linear, error) {
	return nil, errors.New("WebAssembly environments need Linux")
}

func (l *linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }
func (l *linear) Reallocate(uint64) []byte                       { return nil }
func (l *linear) Free()                                          {}
func (l *linear) bytes() []byte                                  { return nil }
func (l *linear) contains(_, _ uint64) bool                      { return false }
func (l *linear) mapShared(_ int, _ int64, _, _ uint64) error    { return errors.ErrUnsupported }
func (l *linear) mapPrivate(_ int, _, _ uint64) error            { return errors.ErrUnsupported }
func (l *linear) mapZero(_, _ uint64) error                      { return errors.ErrUnsupported }
func (l *linear) touch()                                         {}
func (l *linear) release()                                       {}

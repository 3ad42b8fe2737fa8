//go:build !linux

package wasm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// What needs Linux. Other systems read and check modules and run none, because newLinear fails there.

func threadTime() (thread int, had time.Duration) { return 0, 0 }

// linear is a placeholder where there is no memfd to map: such a host runs no guests.
type linear struct {
	size, limit, donated uint64
	imaged               uint64
	refused              bool
	broken               bool
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
func (l *linear) mapPrivateView(_ int, _ int64, _, _ uint64) error {
	return errors.ErrUnsupported
}
func (l *linear) mapZero(_, _ uint64) error { return errors.ErrUnsupported }
func (l *linear) untouched() []bool         { return nil }
func (l *linear) touch()                    {}
func (l *linear) release()                  {}
func (l *linear) most() uint64              { return 0 }

type imageFile struct {
	fd      int
	content []byte
	sum     [sha256.Size]byte
}

func newImageFile([]byte) (*imageFile, error) { return nil, errors.ErrUnsupported }

func (f *imageFile) close() {}

func sealed(int, int64) error { return errors.ErrUnsupported }

type segmentID struct{}

func segmentOf(int) (segmentID, error) { return segmentID{}, errors.ErrUnsupported }

func (*Runtime) compileApart(context.Context, *Module, []byte, string) error {
	return errNotWritten{errors.ErrUnsupported.Error()}
}

// handover needs Linux too.
type handover struct{}

func openHandover(*codecache.Cache) (wazero.CompilationCache, *handover, error) {
	return nil, nil, errors.ErrUnsupported
}

func (*handover) compilerName() string { return "" }
func (*handover) close() error         { return nil }

func (*engine) give(context.Context, []byte, *codecache.Code) (wazero.CompiledModule, error) {
	return nil, errors.ErrUnsupported
}

// ServeCompiler reports that it is not supported.
func ServeCompiler([]string) int {
	fmt.Fprintln(os.Stderr, "modules are compiled by processes of their own on Linux alone")
	return 2
}

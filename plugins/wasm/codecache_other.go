//go:build !linux

package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
)

// codeCache keeps compiled modules; it needs Linux.
type codeCache struct{}

func openCodeCache(string) (*codeCache, error) { return nil, errors.ErrUnsupported }

func (*codeCache) path(string) string                 { return "" }
func (*codeCache) entryName(string, []byte) string    { return "" }
func (*codeCache) find(string) (*compiledCode, error) { return nil, errors.ErrUnsupported }
func (*codeCache) keep(string, *compiledCode) error   { return errors.ErrUnsupported }
func (*codeCache) close() error                       { return nil }
func missing(error) bool                              { return false }
func (*Runtime) compileApart(context.Context, *Plugin, []byte, string) error {
	return errNotWritten{errors.ErrUnsupported.Error()}
}

// handover needs Linux too.
type handover struct{}

func openHandover(*codeCache) (wazero.CompilationCache, *handover, error) {
	return nil, nil, errors.ErrUnsupported
}

func (*handover) compilerName() string { return "" }
func (*handover) close() error         { return nil }

func (*engine) give(context.Context, []byte, *compiledCode) (wazero.CompiledModule, error) {
	return nil, errors.ErrUnsupported
}

// ServeCompiler reports that it is not supported.
func ServeCompiler([]string) int {
	fmt.Fprintln(os.Stderr, "modules are compiled by processes of their own on Linux alone")
	return 2
}

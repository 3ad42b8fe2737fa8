//go:build !linux

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// What needs Linux.

func (*Engine) compileApart(context.Context, *Job, string) error {
	return errNotWritten{errors.ErrUnsupported.Error()}
}

type handover struct{}

func openHandover(*codecache.Cache) (wazero.CompilationCache, *handover, error) {
	return nil, nil, errors.ErrUnsupported
}

func (*handover) compilerName() string { return "" }
func (*handover) close() error         { return nil }

func (*sandbox) give(context.Context, []byte, *codecache.Code) (wazero.CompiledModule, error) {
	return nil, errors.ErrUnsupported
}

// Serve reports that it is not supported.
func Serve([]string, Imports, func(*Job) error, func(context.Context, *Code)) int {
	fmt.Fprintln(os.Stderr, "modules are compiled by processes of their own on Linux alone")
	return 2
}

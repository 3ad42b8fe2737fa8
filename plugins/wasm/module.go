package wasm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// Module is a file that was loaded, checked, metered and compiled: what modules of environments and of components have in
// common. Its methods may be called concurrently. Its memory lives until it and all that was made from it are closed.
type Module struct {
	runtime   *Runtime
	path      string
	config    env.Source
	abi       *abi
	hash      string
	args      []byte // of environments
	engine    *engine
	compiled  wazero.CompiledModule
	metered   *meter.Result
	memoryMin uint64
	memoryMax uint64 // as the module declares it, or addressable
	layout    layout
	exports   map[string]bool // functions that it exports

	image *image // state that instances begin from, nil if it cannot be captured

	lines atomic.Uint64 // that its guests wrote, where they may not log

	users // its instances
}

// Hash returns the SHA-256 of the file, in hexadecimal.
func (m *Module) Hash() string { return m.hash }

func (m *Module) granted(capability string) bool { return slices.Contains(m.config.Grants, capability) }

// Close releases the module. What was made from it stays usable; the compiled code is released with the last.
func (m *Module) Close() error { return m.users.close() }

func (m *Module) release() error {
	m.sayWithheld()
	if m.image != nil {
		m.image.close()
	}
	err := m.compiled.Close(context.Background())
	return errors.Join(err, m.runtime.leave())
}

// prepare starts the module once, lets describe look at the instance, and takes the image that others begin from.
func (m *Module) prepare(ctx context.Context, describe func(*instance) error) error {
	if m.memoryMin > m.config.Memory {
		limit := byteSize(m.config.Memory)
		if m.config.Memory == 0 {
			limit = "less than a page of " + byteSize(wasmPage)
		}
		return m.fail(CodeStart, fmt.Sprintf("begins with %s of memory, its limit is %s", byteSize(m.memoryMin), limit),
			fmt.Sprintf("give the %s %dKiB or more: limits = { memory = \"%[2]dKiB\" } in its table of the file, --memory on a command line; or build it with a smaller stack", m.abi.one, m.memoryMin>>10), nil)
	}
	i, err := m.newInstance()
	if err != nil {
		return m.fail(CodeStart, "cannot be started: "+oneLine(err.Error()), "build it again", err)
	}
	defer i.close()
	var stop context.CancelFunc
	i.ctx.Context, stop = context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(m.runtime.ctx, stop)()
	if err := i.startUp(); err != nil {
		return m.startError(ctx, err)
	}
	if err := describe(i); err != nil {
		return m.startError(ctx, err)
	}
	if m.metered.State == "" {
		m.image, err = i.takeImage()
	}
	return err
}

func (m *Module) fail(code, reason, help string, err error) *table.Error {
	return &table.Error{Code: code, Place: m.path, Reason: reason, Help: help, Err: err}
}

// startError gives a failure before the first environment its code and its advice.
func (m *Module) startError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var load *table.Error
	if errors.As(err, &load) {
		return load
	}
	var call *callError
	if !errors.As(err, &call) {
		return err
	}
	help := "correct the guest, it must start with nothing but its arguments"
	switch call.kind {
	case env.FaultDeadline:
		help = "correct the guest, or raise the limit on its start if it has a reason to take so long"
	case env.FaultMemory:
		help = "raise the " + m.abi.one + "'s memory limit, or correct the guest's rl_alloc"
	}
	return m.fail(CodeStart, fmt.Sprintf("fails in %s: %s", call.call, call.reason), help, err)
}

// startUp runs a module's start code.
func (i *instance) startUp() error {
	steps := []struct{ export, name string }{
		{meter.DataCall, "its data segments"},
		{meter.StartCall, "its start function"},
		{hostabi.ExportInitialize, hostabi.ExportInitialize},
	}
	for _, s := range steps {
		fn := i.module.ExportedFunction(s.export)
		if fn == nil {
			continue
		}
		if _, err := i.invoke(s.name, fn, i.plugin.config.Init); err != nil {
			return err
		}
	}
	return nil
}

package guest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// Module is a module that was compiled: what modules of environments and of components have in
// common. Its methods may be called concurrently. Its memory lives until it and all that was made from it are closed.
type Module struct {
	File  *module.File
	code  *engine.Code
	out   Output
	epoch time.Time

	image *linear.Image // memory that instances begin from, nil if it cannot be captured
	began State         // its state

	lines atomic.Uint64 // that its guests wrote, where they may not log

	users engine.Users // its instances
}

// Output says where guests write.
type Output struct {
	Log   *slog.Logger
	Shown int // how many lines of each module that may not log, which are logged nevertheless
}

// New makes a Module, which closes the code when it is released.
func New(file *module.File, code *engine.Code, out Output) *Module {
	m := &Module{File: file, code: code, out: out, epoch: time.Now()}
	m.users.Free = m.release
	return m
}

// Close releases the module. Its instances stay usable; the compiled code is released with the last.
func (m *Module) Close() error { return m.users.Close() }

// Enter counts a user of the module in, or returns engine.ErrClosed after Close. Each Enter is followed by one Leave.
func (m *Module) Enter() error { return m.users.Enter() }

// Leave counts a user out. The last one after Close releases the module.
func (m *Module) Leave() error { return m.users.Leave() }

func (m *Module) release() error {
	m.sayWithheld()
	if m.image != nil {
		m.image.Close()
	}
	return m.code.Close()
}

// Prepare starts the module once, lets describe look at the instance, and takes the image that others begin from. The error is a
// *table.Error, a resource that the host lacks, or ctx's.
func (m *Module) Prepare(ctx context.Context, describe func(*Instance) error) error {
	if m.File.MemoryMin > m.File.Config.Memory {
		limit := words.Bytes(m.File.Config.Memory)
		if m.File.Config.Memory == 0 {
			limit = "less than a page of " + words.Bytes(linear.WasmPage)
		}
		return m.File.Fail(module.CodeStart, fmt.Sprintf("begins with %s of memory, its limit is %s", words.Bytes(m.File.MemoryMin), limit),
			fmt.Sprintf("give the %s %dKiB or more: limits = { memory = \"%[2]dKiB\" } in its table of the file, --memory on a command line; or build it with a smaller stack", m.File.ABI.Kind(), m.File.MemoryMin>>10), nil)
	}
	i, err := m.instantiate()
	if err != nil {
		return m.File.Fail(module.CodeStart, "cannot be started: "+words.OneLine(err.Error()), "build it again", err)
	}
	defer i.Close()
	var stop context.CancelFunc
	i.ctx.Context, stop = context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(m.code.Context(), stop)()
	if err := i.startUp(); err != nil {
		return m.startError(ctx, err)
	}
	if err := describe(i); err != nil {
		return m.startError(ctx, err)
	}
	if m.File.Metered.State == "" {
		m.began = i.state()
		m.image, err = i.Mem.Image()
	}
	return err
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
	var call *Error
	if !errors.As(err, &call) {
		return err
	}
	help := "correct the guest, it must start with nothing but its arguments"
	switch {
	case call.Wrong:
		help = "correct the guest's rl_alloc: what it gives is aligned as it was asked, inside of the guest's memory, and given once"
	case call.Kind == env.FaultDeadline:
		help = "correct the guest, or raise the limit on its start if it has a reason to take so long"
	case call.Kind == env.FaultMemory:
		help = "raise the " + m.File.ABI.Kind() + "'s memory limit, or correct the guest's rl_alloc"
	}
	return m.File.Fail(module.CodeStart, fmt.Sprintf("fails in %s: %s", call.Call, call.Reason), help, err)
}

// NewInstance makes an instance as Prepare left its own: of the image or, where there is none, by its start and describe. On an error the
// instance, if there is one, is still to be closed.
func (m *Module) NewInstance(describe func(*Instance) error) (*Instance, error) {
	i, err := m.instantiate()
	if err != nil {
		return nil, err
	}
	if m.image != nil {
		return i, i.restore(m.image, &Saved{State: m.began})
	}
	if err := i.startUp(); err != nil {
		return i, err
	}
	return i, describe(i)
}

// startUp runs a module's start code.
func (i *Instance) startUp() error {
	steps := []struct{ export, name string }{
		{meter.DataCall, "its data segments"},
		{meter.StartCall, "its start function"},
		{hostabi.ExportInitialize, hostabi.ExportInitialize},
	}
	for _, s := range steps {
		fn := i.wasm.ExportedFunction(s.export)
		if fn == nil {
			continue
		}
		if _, err := i.invoke(s.name, fn, i.module.File.Config.Init); err != nil {
			return err
		}
	}
	return nil
}

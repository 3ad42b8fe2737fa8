package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// instance is one running copy of a module: its memory, its globals and what the host keeps for it. It is driven
// by one goroutine at a time.
type instance struct {
	plugin  *Module
	module  api.Module
	mem     *linear
	ctx     *callContext
	call    functions
	others  map[string]api.Function // other exports that have been called; see functions
	current api.Function            // called in the middle of other calls; nil before the first time
	answer  [1]uint64               // by it: the stack is the call's that is in progress
	calling string                  // export that is called, for messages
	globals []api.MutableGlobal
	fuel    fuelState
	host    hostState
	stack   [6]uint64 // parameters and result of the call in progress
	serves  Services  // what a component's imports do; nil for environments

	unwanted <-chan struct{} // closed when nobody waits for the environments any more; nil: never

	// Memory that the guest gave to the host at the start: the arguments, and errorBytes for its error text.
	argsPtr, errorPtr uint32
}

// functions are the guest's exports that are called again and again. Each takes ten kilobytes for its stack, so others
// are looked up on first use, which takes some ten microseconds. stepRange is nil where the guest has none.
type functions struct {
	bind, reset, step, stepRange api.Function
}

// callContext carries the instance through wazero to the host functions. It has no other values, because wazero
// looks some up on each call. The embedded context ends when the guest's work is no longer wanted.
type callContext struct {
	context.Context
	instance *instance
}

// Value returns nil.
func (c *callContext) Value(any) any { return nil }

// instanceOf returns the instance that calls a host function.
func instanceOf(ctx context.Context) *instance { return ctx.(*callContext).instance }

// newInstance makes a copy of the module in its first state. No guest code runs.
func (m *Module) newInstance() (*instance, error) {
	mem, err := newLinear(m.memoryMin, m.config.Memory)
	if err != nil {
		return nil, err
	}
	i := &instance{plugin: m, mem: mem}
	i.ctx = &callContext{Context: m.runtime.ctx, instance: i}
	i.host.init(m)
	withMemory := experimental.WithMemoryAllocator(context.Background(), mem)
	// Nothing reads wazero's random source; making its default one takes longer than the rest.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(strings.NewReader(""))
	i.module, err = m.engine.wz.InstantiateModule(withMemory, m.compiled, config)
	if err != nil {
		mem.release()
		return nil, err
	}
	i.fuel.init(i.module)
	for k := range m.metered.Globals {
		i.globals = append(i.globals, i.module.ExportedGlobal(meter.GlobalExport(k)).(api.MutableGlobal))
	}
	i.bindFunctions()
	return i, nil
}

// bindFunctions looks the exports up. Each has a stack of its own, which may have grown.
func (i *instance) bindFunctions() {
	get := i.module.ExportedFunction
	i.others, i.current = nil, nil
	i.call = functions{
		bind: get(hostabi.ExportBind), reset: get(hostabi.ExportReset),
		step: get(hostabi.ExportStep), stepRange: get(hostabi.ExportStepRange),
	}
}

// close ends the instance. No call may be running or follow.
func (i *instance) close() {
	i.host.sayDropped()
	_ = i.module.Close(context.Background()) // only files could fail to close, and it has none
	i.mem.release()
}

// begin prepares one request to the guest, which may take several calls, and the time it may take. The clock
// starts at its first slice of fuel: most requests end before and need no clock.
func (i *instance) begin(limit time.Duration) {
	i.fuel.limit, i.fuel.spent = limit, notStarted
	i.mem.refused = false
	i.host.said = i.host.said[:0]
}

// invoke makes one request of one call and returns its result. An error is a *callError.
func (i *instance) invoke(name string, fn api.Function, limit time.Duration, args ...uint64) (int32, error) {
	i.begin(limit)
	i.calling = name
	copy(i.stack[:], args)
	if err := fn.CallWithStack(i.ctx, i.stack[:]); err != nil {
		return 0, i.failed(err)
	}
	return int32(uint32(i.stack[0])), nil
}

// invokeExport is invoke for exports that are called rarely; the export must be there.
func (i *instance) invokeExport(name string, limit time.Duration, args ...uint64) (int32, error) {
	fn := i.others[name]
	if fn == nil {
		if i.others == nil {
			i.others = map[string]api.Function{}
		}
		fn = i.module.ExportedFunction(name)
		i.others[name] = fn
	}
	return i.invoke(name, fn, limit, args...)
}

// callError is a call that did not return, or one that returned memory which cannot be used.
type callError struct {
	kind   env.FaultKind
	call   string
	reason string
}

func (e *callError) Error() string { return e.reason }

// failed turns wazero's error of a call into a callError.
func (i *instance) failed(err error) *callError {
	e := &callError{kind: env.FaultTrap, call: i.calling, reason: i.plugin.layout.trapReason(err)}
	var stop errStop
	switch {
	case errors.As(err, &stop):
		e.kind = env.FaultDeadline
	case i.mem.refused:
		e.kind = env.FaultMemory
		e.reason = fmt.Sprintf("%s, after the memory limit of %s was reached", e.reason, byteSize(i.mem.limit))
	}
	if strings.HasPrefix(e.reason, "stack overflow") {
		i.bindFunctions() // releases a stack of a hundred megabytes
	}
	if said := i.said(); said != "" {
		e.reason += ": " + said
	}
	return e
}

// allocate asks the guest for n bytes for the host, and checks the result.
func (i *instance) allocate(n, align uint32) (uint32, error) {
	return i.ask(n, align, "its memory limit is ")
}

// ask is allocate. words come before the limit where the guest has nothing to give.
func (i *instance) ask(n, align uint32, words string) (uint32, error) {
	result, err := i.invokeExport(hostabi.ExportAlloc, i.plugin.config.Init, uint64(n), uint64(align))
	if err != nil {
		return 0, err
	}
	ptr := uint32(result)
	bad := func(format string, args ...any) error {
		return &callError{env.FaultMemory, hostabi.ExportAlloc, fmt.Sprintf(format, args...)}
	}
	if ptr == 0 {
		return 0, bad("the guest has no %s to give, %s%s", byteSize(uint64(n)), words, i.bounds())
	}
	if ptr%align != 0 {
		return 0, bad("the guest gave memory at %#x, which is not aligned to %d bytes as asked", ptr, align)
	}
	if !i.mem.contains(uint64(ptr), uint64(n)) {
		return 0, bad("the guest gave %d bytes at %#x, which is outside of its memory of %s", n, ptr, byteSize(i.mem.size))
	}
	return ptr, nil
}

// donate is allocate of memory that becomes a window. It does not count against the guest's limit: while the guest looks for it, its
// memory may grow by as much, and stays allowed to be as large. What it grows by and does not give is more than its limit, which is an
// error; overLimit is true then, and the guest must not go on.
func (i *instance) donate(n uint32) (uint32, error) {
	i.mem.donated += uint64(n)
	ptr, err := i.ask(n, windowAlign, "though a window does not count against its memory limit of ")
	if err != nil {
		i.takeBack(n)
		return 0, err
	}
	if i.overLimit() {
		return 0, &callError{env.FaultMemory, hostabi.ExportAlloc, fmt.Sprintf("the guest has %s of its own beside windows of %s, its memory limit is %s",
			byteSize(i.mem.size-i.mem.donated), byteSize(i.mem.donated), byteSize(i.mem.limit))}
	}
	return ptr, nil
}

// takeBack has n bytes that were a window, or did not become one, count against the guest's limit again.
func (i *instance) takeBack(n uint32) { i.mem.donated -= uint64(n) }

// overLimit reports whether the guest has more memory of its own than its limit: it had more windows, or did not give what it got to
// make one. Memory cannot shrink.
func (i *instance) overLimit() bool { return i.mem.size > i.mem.limit+i.mem.donated }

// bounds says what the limit is, and where the memory ends if that is before.
func (i *instance) bounds() string {
	limit := byteSize(i.mem.limit)
	if end := min(i.mem.most(), i.plugin.memoryMax); end < i.mem.limit+i.mem.donated {
		return limit + ", and its memory ends at " + byteSize(end)
	}
	return limit
}

func byteSize(n uint64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// windowAlign is the alignment required of donated memory: a page on every machine.
const windowAlign = 65536

// perEnv reports whether an export works on one environment after the other.
func perEnv(export string) bool {
	return export == hostabi.ExportStep || export == hostabi.ExportStepRange || export == hostabi.ExportReset
}

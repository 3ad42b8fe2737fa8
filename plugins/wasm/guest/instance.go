package guest

import (
	"context"
	"log/slog"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// Instance is one running copy of a module: its memory, its globals and what the host keeps for it. It is driven by one goroutine at a
// time. After an *Error, LastError and EnvAfter say more about it; besides them only Restore, CopyFrom and Close may follow.
type Instance struct {
	Mem *linear.Memory // its owner maps windows over it and reads it between calls
	// Stack holds the parameters of a call by Run.
	Stack [6]uint64
	// Memory that the guest gave to the host at the start: for its arguments, and ErrorBytes for its error text.
	ArgsPtr, ErrorPtr uint32

	module  *Module
	wasm    api.Module
	ctx     *callContext
	often   [exports]api.Function   // nil where the guest has none
	others  map[string]api.Function // other exports that have been called
	current api.Function            // called in the middle of other calls; nil before the first time
	answer  [1]uint64               // by it: the stack is the call's that is in progress
	calling string                  // export that is called, for messages
	globals []api.MutableGlobal
	fuel    fuelState
	host    hostState
	owner   Owner
}

// Owner says for whom an instance works. The zero value is for nobody.
type Owner struct {
	Name     string           // of the component, for log lines; "" if Log says it itself
	Log      *slog.Logger     // nil: the log of the module's Output
	Metric   func(env.Metric) // takes the numbers that environments report; may be nil
	Unwanted <-chan struct{}  // closed when nobody waits for the guest any more; nil: never
	Services Services         // the imports of a component; nil: none of them can be called
}

// Export is an export that is called again and again. Each takes ten kilobytes for its stack, so others are looked up when they are first
// called, which takes some ten microseconds.
type Export int

// The exports that are called again and again.
const (
	Bind Export = iota
	Reset
	Step
	StepRange
	Slot
	exports
)

var exportNames = [exports]string{hostabi.ExportBind, hostabi.ExportReset, hostabi.ExportStep, hostabi.ExportStepRange, hostabi.ExportSlot}

// hostCall is a function of the host. stack has its parameters, and its result afterwards.
type hostCall func(i *Instance, stack []uint64)

// callContext carries the instance through wazero to the host functions. It has no other values, because wazero
// looks some up on each call. The embedded context ends when the guest's work is no longer wanted.
type callContext struct {
	context.Context
	instance *Instance
}

// Value returns nil.
func (c *callContext) Value(any) any { return nil }

// instanceOf returns the instance that calls a host function.
func instanceOf(ctx context.Context) *Instance { return ctx.(*callContext).instance }

// instantiate makes a copy of the module in its first state. No guest code runs.
func (m *Module) instantiate() (*Instance, error) {
	mem, err := linear.New(m.File.MemoryMin, m.File.Config.Memory)
	if err != nil {
		return nil, err
	}
	i := &Instance{module: m, Mem: mem}
	i.ctx = &callContext{Context: m.code.Context(), instance: i}
	i.host.init()
	i.SetOwner(Owner{Name: m.File.Config.Name})
	if i.wasm, err = m.code.Instantiate(mem); err != nil {
		mem.Release()
		return nil, err
	}
	i.fuel.init(i.wasm)
	for k := range m.File.Metered.Globals {
		i.globals = append(i.globals, i.wasm.ExportedGlobal(meter.GlobalExport(k)).(api.MutableGlobal))
	}
	i.bindFunctions()
	return i, nil
}

// bindFunctions looks the exports up. Each has its own stack, which may have grown.
func (i *Instance) bindFunctions() {
	i.others, i.current = nil, nil
	for x := range exports {
		i.often[x] = i.wasm.ExportedFunction(exportNames[x])
	}
}

// SetOwner says for whom the instance works from here on.
func (i *Instance) SetOwner(o Owner) {
	i.owner = o
	if o.Log == nil {
		i.owner.Log = i.module.out.Log
	}
}

// Close ends the instance. No call may be running or follow.
func (i *Instance) Close() {
	i.sayDropped()
	_ = i.wasm.Close(context.Background()) // only files could fail to close, and it has none
	i.Mem.Release()
}

// Begin begins one request to the guest, which may take several calls, and the time it may take. The clock
// starts at its first slice of fuel: most requests end before and need no clock.
func (i *Instance) Begin(limit time.Duration) {
	i.fuel.limit, i.fuel.spent = limit, notStarted
	i.Mem.Refused = false
	i.host.said = i.host.said[:0]
}

// Has reports whether the guest has one of the exports that are called again and again.
func (i *Instance) Has(x Export) bool { return i.often[x] != nil }

// Run calls an export with the arguments in Stack, within the request that Begin began, and returns its result. The error is an
// *Error. It allocates nothing.
func (i *Instance) Run(x Export) (int32, error) {
	i.calling = exportNames[x]
	if err := i.often[x].CallWithStack(i.ctx, i.Stack[:]); err != nil {
		i.often[x] = i.wasm.ExportedFunction(i.calling) // its stack may have grown to a hundred megabytes
		return 0, i.failed(err)
	}
	return int32(uint32(i.Stack[0])), nil
}

// Request makes one request of one call of an export that is called again and again, as Begin and Run do.
func (i *Instance) Request(x Export, limit time.Duration, args ...uint64) (int32, error) {
	i.Begin(limit)
	copy(i.Stack[:], args)
	return i.Run(x)
}

// Call makes one request of one call of an export by its name, for rarely called exports. The guest must have it. The error is an *Error.
func (i *Instance) Call(name string, limit time.Duration, args ...uint64) (int32, error) {
	fn := i.others[name]
	if fn == nil {
		if i.others == nil {
			i.others = map[string]api.Function{}
		}
		fn = i.wasm.ExportedFunction(name)
		i.others[name] = fn
	}
	return i.invoke(name, fn, limit, args...)
}

// invoke is Call of a function that was looked up; name is for messages.
func (i *Instance) invoke(name string, fn api.Function, limit time.Duration, args ...uint64) (int32, error) {
	i.Begin(limit)
	i.calling = name
	copy(i.Stack[:], args)
	if err := fn.CallWithStack(i.ctx, i.Stack[:]); err != nil {
		return 0, i.failed(err)
	}
	return int32(uint32(i.Stack[0])), nil
}

// Calling returns the export that was called last.
func (i *Instance) Calling() string { return i.calling }

// CountStep counts a step of the guest's owner. The guest's clock goes by steps.
func (i *Instance) CountStep() { i.host.steps++ }

// Steps returns how many steps were counted.
func (i *Instance) Steps() uint64 { return i.host.steps }

// FuelUsed returns how much the guest has burned since it was made, in about the time of a simple instruction.
func (i *Instance) FuelUsed() uint64 { return i.fuel.used() }

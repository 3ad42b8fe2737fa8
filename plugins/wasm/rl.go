package wasm

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
)

// hostFunction is a function that the host offers to guests.
type hostFunction struct {
	name            string
	params, results []api.ValueType
	grant           string // capability that a guest needs to import it, "" if none
	call            func(i *instance, stack []uint64)
}

// hostModule holds what guests import by one module name.
type hostModule struct {
	name      string
	functions []hostFunction
}

// hostModules returns everything that a guest can import. WASI needs no grant because it exposes nothing.
func hostModules() []hostModule {
	return []hostModule{
		{hostabi.ImportModule, rlFunctions()},
		{hostabi.ImportComponent, componentFunctions()},
		{wasiModule, wasiFunctions()},
	}
}

func (m hostModule) instantiate(ctx context.Context, wz wazero.Runtime) error {
	b := wz.NewHostModuleBuilder(m.name)
	for _, f := range m.functions {
		call := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			f.call(instanceOf(ctx), stack)
		})
		b = b.NewFunctionBuilder().WithGoModuleFunction(call, f.params, f.results).Export(f.name)
	}
	if m.name == meter.YieldModule {
		yield := api.GoFunc(func(ctx context.Context, _ []uint64) { instanceOf(ctx).yield() })
		b = b.NewFunctionBuilder().WithGoFunction(yield, nil, nil).Export(meter.YieldName)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// Capabilities that the source of a module may be granted.
const (
	GrantLog     = "log"     // rl.log, rl.log_enabled, and what the guest writes to stdout and stderr
	GrantEntropy = "entropy" // rl.entropy
	GrantClock   = "clock"   // rl.clock_ns
	GrantMetric  = "metric"  // rl.metric, rl.metric_env; rl_component.declare, rl_component.report
)

// Limits of a guest's messages.
const (
	maxLogBytes    = 4096
	maxMetricBytes = 128
	maxMetrics     = 256
)

// stepNanos is how far the virtual clock advances in one call of Step.
const stepNanos = int64(time.Millisecond)

// hostState is the state of one instance's host functions. All of it but the logging belongs to snapshots.
type hostState struct {
	name    string // component, for log lines
	log     *slog.Logger
	lines   lineLimit
	said    []byte // first line that the guest wrote to stderr in this call
	partial []byte // stdout and stderr up to the next end of line

	steps   uint64
	skipped int64    // virtual time that passed within steps
	entropy []uint64 // random streams: of each environment, and last that of calls about none

	metric  func(env.Metric)
	metrics map[string]string
}

func (h *hostState) init(m *Module) {
	h.name, h.log = m.config.Name, m.runtime.log
	h.said = make([]byte, 0, maxSaid)
	h.entropy = make([]uint64, 1)
}

// now returns the time of the virtual clock.
func (h *hostState) now() int64 { return int64(h.steps)*stepNanos + h.skipped }

func rlFunctions() []hostFunction {
	calls := map[string]hostFunction{
		hostabi.ImportLog:        {grant: GrantLog, call: rlLog},
		hostabi.ImportLogEnabled: {grant: GrantLog, call: rlLogEnabled},
		hostabi.ImportEntropy:    {grant: GrantEntropy, call: rlEntropy},
		hostabi.ImportClock:      {grant: GrantClock, call: rlClock},
		hostabi.ImportMetric:     {grant: GrantMetric, call: rlMetric},
		hostabi.ImportMetricEnv:  {grant: GrantMetric, call: rlMetricEnv},
	}
	return offered(hostabi.EnvImports(), calls)
}

// offered returns host functions with the names and signatures of an ABI.
func offered(specs []hostabi.Function, calls map[string]hostFunction) []hostFunction {
	var all []hostFunction
	for _, spec := range specs {
		f := calls[spec.Name]
		f.name, f.params, f.results = spec.Name, valueTypes(spec.Params), valueTypes(spec.Results)
		all = append(all, f)
	}
	return all
}

// valueTypes returns value types as encoded in a module, which is also how wazero has them.
func valueTypes(types []hostabi.ValueType) []byte {
	out := make([]byte, len(types))
	for i, t := range types {
		out[i] = byte(t)
	}
	return out
}

// view returns n bytes of guest memory, or nil if out of bounds.
func (i *instance) view(ptr, n uint32) []byte {
	if !i.mem.contains(uint64(ptr), uint64(n)) {
		return nil
	}
	return i.mem.bytes()[ptr:][:n:n]
}

// level returns the level of a guest's message by its number; those beyond the last mean the last.
func level(n uint64) slog.Level {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	return levels[min(uint32(n), uint32(len(levels)-1))]
}

func rlLog(i *instance, stack []uint64) {
	text := i.view(uint32(stack[1]), min(uint32(stack[2]), maxLogBytes))
	if text == nil {
		return
	}
	i.host.say(i.ctx, level(stack[0]), text)
	i.work(lineWeight + len(text))
}

func rlLogEnabled(i *instance, stack []uint64) {
	enabled := i.host.log.Enabled(i.ctx, level(stack[0]))
	stack[0] = 0
	if enabled {
		stack[0] = 1
	}
}

func rlEntropy(i *instance, stack []uint64) {
	buf := i.view(uint32(stack[0]), uint32(stack[1]))
	if buf == nil {
		stack[0] = status(hostabi.StatusArgument)
		return
	}
	if !perEnv(i.calling) {
		stack[0] = status(hostabi.StatusState) // it would depend on the other environments of the instance
		return
	}
	i.fill(buf)
	stack[0] = status(hostabi.StatusOK)
}

func rlClock(i *instance, stack []uint64) { stack[0] = uint64(i.host.now()) }

func rlMetric(i *instance, stack []uint64) {
	i.report(i.envOf(), uint32(stack[0]), uint32(stack[1]), math.Float64frombits(stack[2]), hostabi.TensorMean)
}

func rlMetricEnv(i *instance, stack []uint64) {
	index, gather := int(int32(stack[0])), hostabi.TensorFlags(stack[4])
	if index < 0 || index >= len(i.host.entropy)-1 || gather&^hostabi.TensorGather != 0 || gather&(gather-1) != 0 {
		return
	}
	i.report(index, uint32(stack[1]), uint32(stack[2]), math.Float64frombits(stack[3]), gather)
}

// report passes a number on, if its name can be read and is one of not too many.
func (i *instance) report(index int, at, n uint32, value float64, gather hostabi.TensorFlags) {
	name := i.view(at, n)
	if len(name) == 0 || len(name) > maxMetricBytes || i.host.metric == nil {
		return
	}
	known, ok := i.host.metrics[string(name)]
	if !ok {
		if len(i.host.metrics) == maxMetrics {
			return
		}
		known = strings.ToValidUTF8(string(name), "?")
		if i.host.metrics == nil {
			i.host.metrics = map[string]string{}
		}
		i.host.metrics[string(name)] = known
	}
	i.host.metric(env.Metric{Env: index, Name: known, Value: value, Gather: gather})
}

// status encodes a status as a guest's i32.
func status(s hostabi.Status) uint64 { return uint64(uint32(s)) }

package guest

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/internal/meter"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// hostCall is what a function of the host does. stack has its parameters, and its result afterwards.
type hostCall func(i *Instance, stack []uint64)

// Imports gives a wazero runtime the functions that guests can import.
func Imports(ctx context.Context, wz wazero.Runtime) error {
	calls := map[string]map[string]hostCall{
		hostabi.ImportModule: rlCalls(), hostabi.ImportComponent: componentCalls(), module.WASI: wasiCalls(),
	}
	for _, m := range module.HostModules() {
		if err := offer(ctx, wz, m, calls[m.Name]); err != nil {
			return fmt.Errorf("host module %s: %w", m.Name, err)
		}
	}
	return nil
}

func offer(ctx context.Context, wz wazero.Runtime, m module.HostModule, calls map[string]hostCall) error {
	b := wz.NewHostModuleBuilder(m.Name)
	for _, f := range m.Functions {
		do := calls[f.Name]
		if do == nil && m.Name == module.WASI {
			do = wasi(wasiFails(wasiBadFD))
		}
		call := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			do(instanceOf(ctx), stack)
		})
		b = b.NewFunctionBuilder().WithGoModuleFunction(call, f.Params, f.Results).Export(f.Name)
	}
	if m.Name == meter.YieldModule {
		yield := api.GoFunc(func(ctx context.Context, _ []uint64) { instanceOf(ctx).yield() })
		b = b.NewFunctionBuilder().WithGoFunction(yield, nil, nil).Export(meter.YieldName)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// Limits of a guest's messages.
const (
	maxLogBytes    = 4096
	maxMetricBytes = 128
	maxMetrics     = 256
)

// stepNanos is how far the virtual clock advances in one call of Step.
const stepNanos = int64(time.Millisecond)

// hostState is the state of one instance's host functions. All of it but the logging and the names of metrics belongs to snapshots.
type hostState struct {
	lines   lineLimit
	said    []byte // first line that the guest wrote to stderr in this call
	partial []byte // stdout and stderr up to the next end of line

	steps   uint64
	skipped int64    // virtual time that passed within steps
	entropy []uint64 // random streams: of each environment, and last that of calls about none

	metrics map[string]string // their names, as they were reported and as they are told
}

func (h *hostState) init() {
	h.said = make([]byte, 0, maxSaid)
	h.entropy = make([]uint64, 1)
}

// now returns the time of the virtual clock.
func (h *hostState) now() int64 { return int64(h.steps)*stepNanos + h.skipped }

func rlCalls() map[string]hostCall {
	return map[string]hostCall{
		hostabi.ImportLog:        rlLog,
		hostabi.ImportLogEnabled: rlLogEnabled,
		hostabi.ImportEntropy:    rlEntropy,
		hostabi.ImportClock:      rlClock,
		hostabi.ImportMetric:     rlMetric,
		hostabi.ImportMetricEnv:  rlMetricEnv,
	}
}

// View returns n bytes of guest memory in place, or nil if out of bounds. It is valid until the guest is called.
func (i *Instance) View(ptr, n uint32) []byte {
	if !i.Mem.Contains(uint64(ptr), uint64(n)) {
		return nil
	}
	return i.Mem.Bytes()[ptr:][:n:n]
}

// level returns the level of a guest's message by its number; those beyond the last mean the last.
func level(n uint64) slog.Level {
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	return levels[min(uint32(n), uint32(len(levels)-1))]
}

func rlLog(i *Instance, stack []uint64) {
	text := i.View(uint32(stack[1]), min(uint32(stack[2]), maxLogBytes))
	if text == nil {
		return
	}
	i.say(level(stack[0]), text)
	i.work(lineWeight + len(text))
}

func rlLogEnabled(i *Instance, stack []uint64) {
	enabled := i.owner.Log.Enabled(i.ctx, level(stack[0]))
	stack[0] = 0
	if enabled {
		stack[0] = 1
	}
}

func rlEntropy(i *Instance, stack []uint64) {
	buf := i.View(uint32(stack[0]), uint32(stack[1]))
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

func rlClock(i *Instance, stack []uint64) { stack[0] = uint64(i.host.now()) }

func rlMetric(i *Instance, stack []uint64) {
	i.report(i.envOf(), uint32(stack[0]), uint32(stack[1]), math.Float64frombits(stack[2]), hostabi.TensorMean)
}

func rlMetricEnv(i *Instance, stack []uint64) {
	index, gather := int(int32(stack[0])), hostabi.TensorFlags(stack[4])
	if index < 0 || index >= len(i.host.entropy)-1 || gather&^hostabi.TensorGather != 0 || gather&(gather-1) != 0 {
		return
	}
	i.report(index, uint32(stack[1]), uint32(stack[2]), math.Float64frombits(stack[3]), gather)
}

// report passes a number on, if its name can be read and is one of not too many.
func (i *Instance) report(index int, at, n uint32, value float64, gather hostabi.TensorFlags) {
	name := i.View(at, n)
	if len(name) == 0 || len(name) > maxMetricBytes || i.owner.Metric == nil {
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
	i.owner.Metric(env.Metric{Env: index, Name: known, Value: value, Gather: gather})
}

// status encodes a status as a guest's i32.
func status(s hostabi.Status) uint64 { return uint64(uint32(s)) }

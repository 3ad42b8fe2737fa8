package guest

import (
	"log/slog"
	"math"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// Limits of a guest's numbers.
const (
	maxMetricBytes = 128
	maxMetrics     = 256
)

func rlCalls() map[string]hostCall {
	return map[string]hostCall{
		hostabi.ImportLog:        rlLog,
		hostabi.ImportLogEnabled: rlLogEnabled,
		hostabi.ImportClock:      rlClock,
		hostabi.ImportMetricEnv:  rlMetricEnv,
	}
}

// level returns the level of a guest's message by its number; numbers beyond the last mean the last.
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

func rlClock(i *Instance, stack []uint64) { stack[0] = uint64(i.host.now()) }

func rlMetricEnv(i *Instance, stack []uint64) {
	index, gather := int(int32(stack[0])), hostabi.TensorFlags(stack[4])
	if index < 0 || index >= len(i.host.entropy)-1 || gather&^hostabi.TensorGather != 0 || gather&(gather-1) != 0 {
		return
	}
	i.report(index, uint32(stack[1]), uint32(stack[2]), math.Float64frombits(stack[3]), gather)
}

// report passes a number on, if its name can be read and there are not too many names.
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

package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// globalStep is the x-axis of all metrics: env steps learned from.
const globalStep = "global_step"

// readStats returns the numbers of a block of the learner's and their names.
func (rn *Runner) readStats(h hostabi.Handle) ([]string, []float64, error) {
	a, err := rn.h.Arenas.Of(h)
	if err != nil {
		return nil, nil, err
	}
	names, ok := a.Schema().(trajectory.Names)
	if !ok {
		return nil, nil, fmt.Errorf("arena %s holds no named numbers", a.Name())
	}
	lease, err := a.Lease(h)
	if err != nil {
		return nil, nil, err
	}
	b := lease.Bytes()
	names = names[:min(len(names), len(b)/8)]
	values := make([]float64, len(names))
	for i := range values {
		values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return names, values, errors.Join(lease.Release())
}

// writeMetrics writes a row: the learners' reports, the windows, and all counters of the host.
func (rn *Runner) writeMetrics(names []string, values []float64) {
	if len(rn.log.metrics) == 0 && !rn.out.Metrics {
		return
	}
	now := time.Now()
	rn.rate.Observe(now, float64(rn.envStepsMade()))
	if rn.log.thins(now) {
		return
	}
	r := newRow()
	r.number(globalStep, float64(rn.counted()))
	r.number("time", float64(now.UnixMilli())/1000)
	r.number("charts/SPS", rn.rate.PerSecond(shortWindow))
	if rn.window.Len() > 0 {
		r.number(component.GaugeMeanReturn, rn.window.Mean())
		r.number(gaugeMeanLength, rn.window.MeanLength())
	}
	r.number("charts/episodes", float64(rn.window.Episodes()))
	r.number("charts/window_full", flag(rn.window.Full()))
	r.number("perf/wall_seconds", rn.wall().Seconds())
	for i, name := range names {
		r.number(name, values[i])
	}
	for _, m := range rn.beside.metrics {
		r.number(m.name, m.value)
	}
	rn.beside = newRow()
	for _, policy := range slices.Sorted(maps.Keys(rn.others)) {
		if w := rn.others[policy].window; w.Len() > 0 {
			r.number(component.OfPolicy(policy, component.GaugeMeanReturn), w.Mean())
			r.number(component.OfPolicy(policy, gaugeMeanLength), w.MeanLength())
		}
	}
	rn.environments(&r)
	if rn.h.Steps != nil {
		rn.h.Steps(func(name string, n uint64) { r.number(name, float64(n)) })
	}
	for _, s := range rn.h.Stats.Snapshot() {
		if !strings.HasPrefix(s.Name, environment) {
			r.number(s.Name, s.Value)
		}
	}
	for _, l := range rn.log.metrics {
		rn.log.report(l.write(now, rn.counted(), r.metrics))
	}
	if rn.out.Metrics {
		_, _ = rn.screen.Write(appendRow([]byte(`{"event":"metrics",`), r.metrics))
	}
}

// environment is the prefix of the names of numbers reported by environments.
const environment = "env/"

// told is the total reported under a name up to the last line.
type told struct {
	count uint64
	sum   float64
}

// environments writes the numbers that environments have reported since the last line: their mean and count. The newest
// number alone would come from an arbitrary environment.
func (rn *Runner) environments(r *row) {
	now := map[string]told{}
	rn.h.Stats.Each(nil, nil, func(name string, h *stat.Histogram) {
		if strings.HasPrefix(name, environment) {
			d := h.Snapshot()
			now[name] = told{d.Count, d.Sum}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(now)) {
		before, n := rn.told[name], now[name]
		if n.count > before.count {
			r.number(name, (n.sum-before.sum)/float64(n.count-before.count))
			r.number(name+"/count", float64(n.count-before.count))
		}
	}
	rn.told = now
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metric is one number of a row.
type metric struct {
	name  string
	value float64
}

// row is the unit that all logs of metrics write. A name is in it once.
type row struct {
	metrics []metric
	has     map[string]bool
}

func newRow() row { return row{has: make(map[string]bool)} }

// set adds a metric, or replaces the one of that name.
func (r *row) set(name string, v float64) {
	if i := slices.IndexFunc(r.metrics, func(m metric) bool { return m.name == name }); i >= 0 {
		r.metrics[i].value = v
		return
	}
	r.number(name, v)
}

// number adds a metric unless the name is taken.
func (r *row) number(name string, v float64) {
	if !r.has[name] {
		r.has[name] = true
		r.metrics = append(r.metrics, metric{name, v})
	}
}

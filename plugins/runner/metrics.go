package runner

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/rlhost/rlhost/core/component"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

// globalStep is the x-axis of all metrics: env steps learned from.
const globalStep = "global_step"

// readStats returns the numbers of a block of the learner's and their names.
func (c *Runner) readStats(h hostabi.Handle) ([]string, []float64, error) {
	a, err := c.h.Arenas.Of(h)
	if err != nil {
		return nil, nil, err
	}
	names, ok := a.Schema().([]string)
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

// writeMetrics appends a line to metrics.jsonl: what the learner reports, the window, and all counters of the
// host. A name is in the line once.
func (c *Runner) writeMetrics(names []string, values []float64) {
	if c.log.metrics == nil {
		return
	}
	now := time.Now()
	c.rate.Observe(now, float64(c.envStepsMade()))
	l := line{b: []byte{'{'}, has: make(map[string]bool)}
	l.number(globalStep, float64(c.trained))
	l.number("time", float64(now.UnixMilli())/1000)
	l.number("charts/SPS", c.rate.PerSecond(shortWindow))
	if c.window.Len() > 0 {
		l.number(component.GaugeMeanReturn, c.window.Mean())
		l.number("charts/episodic_length", c.window.MeanLength())
	}
	l.number("charts/episodes", float64(c.window.Episodes()))
	l.number("charts/window_full", flag(c.window.Full()))
	l.number("perf/wall_seconds", c.wall().Seconds())
	for i, name := range names {
		l.number(name, values[i])
	}
	c.environments(&l)
	for _, s := range c.h.Stats.Snapshot() {
		if !strings.HasPrefix(s.Name, environment) {
			l.number(s.Name, s.Value)
		}
	}
	c.log.report(c.log.metrics.append(append(l.b, '}', '\n')))
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
func (c *Runner) environments(l *line) {
	now := map[string]told{}
	c.h.Stats.Each(nil, nil, func(name string, h *stat.Histogram) {
		if strings.HasPrefix(name, environment) {
			d := h.Snapshot()
			now[name] = told{d.Count, d.Sum}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(now)) {
		before, n := c.told[name], now[name]
		if n.count > before.count {
			l.number(name, (n.sum-before.sum)/float64(n.count-before.count))
			l.number(name+"/count", float64(n.count-before.count))
		}
	}
	c.told = now
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// line is a JSON object of numbers.
type line struct {
	b   []byte
	has map[string]bool
}

// number adds a member unless the name is taken. JSON has no NaN and no infinity: they become null.
func (l *line) number(name string, v float64) {
	if l.has[name] {
		return
	}
	l.has[name] = true
	if len(l.b) > 1 {
		l.b = append(l.b, ',')
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		panic(fmt.Sprintf("runner: a string without JSON: %v", err))
	}
	l.b = append(append(l.b, quoted...), ':')
	switch size := math.Abs(v); {
	case !finite(v):
		l.b = append(l.b, "null"...)
	case size != 0 && (size < 1e-6 || size >= 1e21):
		l.b = strconv.AppendFloat(l.b, v, 'e', -1, 64)
	default:
		l.b = strconv.AppendFloat(l.b, v, 'f', -1, 64)
	}
}

package component

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/stat"

	"github.com/rlhost/rlhost/hostabi"
)

// Bounds on the metrics and timers of a guest.
const (
	maxMetrics = 256
	maxTimers  = 64
)

// metric is a number that a guest reports; one of its fields is set.
type metric struct {
	counter   *stat.Counter
	gauge     *stat.Gauge
	histogram *stat.Histogram
}

// metrics are the numbers that a guest reports.
type metrics struct {
	list  []metric
	known map[string]int32 // by kind and name
}

// declare returns the number of a metric, or a Status.
func (m *metrics) declare(to *stat.Registry, kind hostabi.MetricKind, name []byte) int32 {
	text := string(name)
	if !printable(text) {
		return int32(hostabi.StatusArgument)
	}
	if ofHost(text) {
		return int32(hostabi.StatusDenied)
	}
	key := string(rune('0'+kind)) + text
	if known, ok := m.known[key]; ok {
		return known
	}
	if len(m.list) == maxMetrics {
		return int32(hostabi.StatusMemory)
	}
	var x metric
	switch kind {
	case hostabi.MetricCounter:
		x.counter = to.Counter(text)
	case hostabi.MetricGauge:
		x.gauge = to.Gauge(text)
	case hostabi.MetricHistogram:
		x.histogram = to.Histogram(text)
	default:
		return int32(hostabi.StatusArgument)
	}
	if m.known == nil {
		m.known = map[string]int32{}
	}
	m.known[key] = int32(len(m.list))
	m.list = append(m.list, x)
	return m.known[key]
}

// printable reports whether a name is text that can be shown unchanged.
func printable(name string) bool {
	bad := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) || r == ' ' }
	return strings.IndexFunc(name, bad) < 0
}

// hostGroups are the first parts of the names of the host's own numbers, among them a run's results and the numbers that stop it.
var hostGroups = []string{"batcher", "charts", "env", "eval", "global_step", "inference", "lag", "learn", "learner", "losses", "perf", "process",
	"rollout", "runner", "swap", "time"}

// ofHost reports whether a name is, or may be, the name of a number of the host's: GROUP/NAME, or POLICY/GROUP/NAME.
func ofHost(name string) bool {
	group, rest, _ := strings.Cut(name, "/")
	second, _, deeper := strings.Cut(rest, "/")
	return slices.Contains(hostGroups, group) || deeper && slices.Contains(hostGroups, second)
}

// report changes a metric. Unknown metrics, and values that a counter cannot count, are left out.
func (m *metrics) report(number uint32, value float64) {
	if number >= uint32(len(m.list)) {
		return
	}
	switch x := m.list[number]; {
	case x.gauge != nil:
		x.gauge.Set(value)
	case x.histogram != nil:
		x.histogram.Observe(value)
	case value >= 0 && value < math.MaxUint32:
		x.counter.Add(uint64(value))
	}
}

// timers are the timers of a guest.
type timers struct {
	list map[uint32]*alarm
	last uint32
}

// alarm is a timer of a guest's. Once it is due it waits among the component's messages, so that a component that is paused, or whose
// own messages wait for room, is called for neither.
type alarm struct {
	*loop.Timer
	due bool // and the guest has not been called
}

// begin returns the number of a timer, or a Status.
func (t *timers) begin(r *loop.Receiver, after, every time.Duration, fire func(uint32)) int32 {
	if len(t.list) == maxTimers || t.last == math.MaxInt32 {
		return int32(hostabi.StatusMemory)
	}
	if t.list == nil {
		t.list = map[uint32]*alarm{}
	}
	t.last++
	id, x := t.last, &alarm{}
	tell := func(*hostabi.Message) {
		if t.list[id] != x {
			return // it was cancelled meanwhile
		}
		x.due = false
		if every == 0 {
			delete(t.list, id)
		}
		fire(id)
	}
	due := func() {
		if !x.due {
			x.due = true
			r.Post(tell, hostabi.Message{})
		}
	}
	x.Timer = r.After(after, func() {
		if every > 0 {
			x.Timer = r.Every(every, due)
		}
		due()
	})
	t.list[id] = x
	return int32(id)
}

func (t *timers) cancel(id uint32) hostabi.Status {
	x := t.list[id]
	if x == nil {
		return hostabi.StatusState
	}
	x.Stop()
	delete(t.list, id)
	return hostabi.StatusOK
}

func (t *timers) stop() {
	for _, x := range t.list {
		x.Stop()
	}
	t.list = nil
}

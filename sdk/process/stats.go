package process

import (
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi/native"
)

// How often changed metrics go to the host, and how many in one frame.
const (
	statsEvery    = 100 * time.Millisecond
	statsPerFrame = 64
)

// mirror sends the component's metrics to the host.
type mirror struct {
	registry *stat.Registry
	wire     func(f native.Frame, files ...int) error
	end      chan struct{}
	ended    sync.WaitGroup

	mu       sync.Mutex // one report at a time
	counters map[string]uint64
	gauges   map[string]float64
}

func newMirror(r *stat.Registry, wire func(native.Frame, ...int) error) *mirror {
	return &mirror{registry: r, wire: wire, end: make(chan struct{}),
		counters: map[string]uint64{}, gauges: map[string]float64{}}
}

// start starts the reports.
func (m *mirror) start() {
	m.ended.Go(func() {
		t := time.NewTicker(statsEvery)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				m.send()
			case <-m.end:
				return
			}
		}
	})
}

// stop ends the reports.
func (m *mirror) stop() {
	close(m.end)
	m.ended.Wait()
}

// send reports the changes since the last report. A frame that cannot be sent is lost: the host is gone.
func (m *mirror) send() {
	m.mu.Lock()
	defer m.mu.Unlock()
	var frames []*native.Stats
	n := statsPerFrame
	frame := func() *native.Stats {
		if n == statsPerFrame {
			frames = append(frames, &native.Stats{Counters: map[string]uint64{}, Gauges: map[string]float64{},
				Distributions: map[string]native.Distribution{}})
			n = 0
		}
		n++
		return frames[len(frames)-1]
	}
	m.registry.Each(func(name string, c *stat.Counter) {
		if v := c.Value(); v != m.counters[name] {
			m.counters[name] = v
			frame().Counters[name] = v
		}
	}, func(name string, g *stat.Gauge) {
		if v, known := m.gauges[name]; !known || v != g.Value() {
			m.gauges[name] = g.Value()
			frame().Gauges[name] = m.gauges[name]
		}
	}, func(name string, h *stat.Histogram) {
		d := h.Drain()
		if d.Count > 0 || d.Invalid > 0 {
			frame().Distributions[name] = native.Distribution(d.Buckets())
		}
	})
	for _, f := range frames {
		_ = m.wire(native.Frame{Stats: f})
	}
}

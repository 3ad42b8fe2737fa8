package proxy

import (
	"fmt"
	"iter"
	"maps"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi/native"
)

// maxMetrics is how many metrics a component may have.
const maxMetrics = 4096

// metrics are the metrics that a process has reported.
type metrics struct {
	counters map[string]uint64
	names    map[string]bool
}

func newMetrics() metrics {
	return metrics{counters: map[string]uint64{}, names: map[string]bool{}}
}

// take adds the process's metrics to the host's.
func (m *metrics) take(s *native.Stats, to *stat.Registry) error {
	for _, names := range []iter.Seq[string]{maps.Keys(s.Counters), maps.Keys(s.Gauges), maps.Keys(s.Histograms), maps.Keys(s.Distributions)} {
		for name := range names {
			if len(name) > 200 {
				return fmt.Errorf("a metric with a name of %d bytes", len(name))
			}
			m.names[name] = true
		}
	}
	if len(m.names) > maxMetrics {
		return fmt.Errorf("more than %d metrics", maxMetrics)
	}
	for name, total := range s.Counters {
		if name == component.CounterMade {
			continue // the host counts arrivals itself
		}
		if before := m.counters[name]; total > before {
			to.Counter(name).Add(total - before)
			m.counters[name] = total
		}
	}
	for name, v := range s.Gauges {
		to.Gauge(name).Set(v)
	}
	for name, list := range s.Histograms {
		for _, v := range list {
			to.Histogram(name).Observe(v)
		}
	}
	for name, d := range s.Distributions {
		if err := to.Histogram(name).Merge(stat.Buckets(d)); err != nil {
			return fmt.Errorf("metric %q: %w", name, err)
		}
	}
	return nil
}

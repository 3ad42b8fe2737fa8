package stat

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Registry holds metrics by name. All methods may be called from any goroutine.
type Registry struct {
	mu         sync.RWMutex
	counters   map[string]*Counter   // guarded by mu
	gauges     map[string]*Gauge     // guarded by mu
	histograms map[string]*Histogram // guarded by mu
}

// NewRegistry returns a registry without metrics.
func NewRegistry() *Registry {
	return &Registry{
		counters:   map[string]*Counter{},
		gauges:     map[string]*Gauge{},
		histograms: map[string]*Histogram{},
	}
}

// Counter returns the counter of that name, made on first use. A name should have one kind: a gauge of the same
// name would be another metric, and a snapshot would have both.
func (r *Registry) Counter(name string) *Counter { return find(r, r.counters, name) }

// Gauge returns the gauge of that name, made on first use.
func (r *Registry) Gauge(name string) *Gauge { return find(r, r.gauges, name) }

// Histogram returns the histogram of that name, made on first use.
func (r *Registry) Histogram(name string) *Histogram { return find(r, r.histograms, name) }

// find returns the metric of that name in one of the registry's maps.
func find[T any](r *Registry, metrics map[string]*T, name string) *T {
	r.mu.RLock()
	m := metrics[name]
	r.mu.RUnlock()
	if m != nil {
		return m
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m = metrics[name]; m == nil {
		m = new(T)
		metrics[name] = m
	}
	return m
}

// Each calls one of the functions with each current metric, in no order and with no lock held; functions may be nil.
func (r *Registry) Each(counter func(string, *Counter), gauge func(string, *Gauge), histogram func(string, *Histogram)) {
	r.mu.RLock()
	counters, gauges, histograms := maps.Clone(r.counters), maps.Clone(r.gauges), maps.Clone(r.histograms)
	r.mu.RUnlock()
	each(counters, counter)
	each(gauges, gauge)
	each(histograms, histogram)
}

func each[T any](metrics map[string]*T, fn func(string, *T)) {
	if fn == nil {
		return
	}
	for name, m := range metrics {
		fn(name, m)
	}
}

// Sample is one number of a snapshot.
type Sample struct {
	Name  string
	Value float64
}

// Snapshot returns all metrics, sorted by name. A histogram gives its name with _count, and unless it is empty
// _mean, _min, _p50, _p90, _p99 and _max; _invalid if it was given NaNs or infinities.
func (r *Registry) Snapshot() []Sample {
	r.mu.RLock()
	defer r.mu.RUnlock()
	samples := make([]Sample, 0, len(r.counters)+len(r.gauges)+7*len(r.histograms))
	for name, c := range r.counters {
		samples = append(samples, Sample{name, float64(c.Value())})
	}
	for name, g := range r.gauges {
		samples = append(samples, Sample{name, g.Value()})
	}
	for name, h := range r.histograms {
		samples = appendDistribution(samples, name, h.Snapshot())
	}
	slices.SortFunc(samples, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	return samples
}

func appendDistribution(samples []Sample, name string, d Distribution) []Sample {
	samples = append(samples, Sample{name + "_count", float64(d.Count)})
	if d.Invalid > 0 {
		samples = append(samples, Sample{name + "_invalid", float64(d.Invalid)})
	}
	if d.Count == 0 {
		return samples
	}
	return append(samples,
		Sample{name + "_mean", d.Mean()},
		Sample{name + "_min", d.Min},
		Sample{name + "_p50", d.Quantile(0.5)},
		Sample{name + "_p90", d.Quantile(0.9)},
		Sample{name + "_p99", d.Quantile(0.99)},
		Sample{name + "_max", d.Max})
}

// Package prometheus serves the metrics of a run over HTTP, as Prometheus and OpenMetrics have them. It alone knows their libraries.
//
//	e := prometheus.New("cartpole/0003", "main", stats)
//	l, err := prometheus.Listen("127.0.0.1:9464")
//	go e.Serve(l)              // until Close
//	e.Line(samples)            // with each dataset: the learner's report and the windows
//
// Counters, gauges and histograms are read when they are asked for, so that they are new also while a run stands still; what the runner
// computes for a line of its files is that of the newest line.
//
// A name is that of core/metrics with rlhost_ in front and "_" for strokes. Words in capitals in it become labels, such as
// rlhost_steps_dropped_total{reason="fault"}; units are base units, so that swap/pause_ns is rlhost_swap_pause_seconds, a summary. All have
// the label run, and what each policy has the label policy.
package prometheus

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"golang.org/x/net/netutil"

	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/core/stat"
)

// Path is where the metrics are.
const Path = "/metrics"

// Bounds on what strangers can hold.
const (
	maxConnections = 64
	maxScrapes     = 4
	headerBytes    = 16 << 10
	scrapeTimeout  = 10 * time.Second
)

// Exporter serves the metrics of one run. Line may be called while it serves.
type Exporter struct {
	run, policy string
	stats       *stat.Registry
	line        atomic.Pointer[[]stat.Sample]
	server      http.Server
}

// New returns an exporter of the run of that name, whose leading policy is policy.
func New(run, policy string, stats *stat.Registry) *Exporter {
	e := &Exporter{run: run, policy: policy, stats: stats}
	mux := http.NewServeMux()
	mux.Handle("GET "+Path, Handler(e))
	e.server = http.Server{
		Handler: mux, MaxHeaderBytes: headerBytes,
		ReadTimeout: scrapeTimeout, WriteTimeout: 2 * scrapeTimeout, IdleTimeout: time.Minute,
	}
	return e
}

// Handler serves the metrics of several runs, each once, at any path. Each family has the runs in the order of their names.
func Handler(runs ...*Exporter) http.Handler {
	runs = slices.SortedFunc(slices.Values(runs), func(a, b *Exporter) int { return cmp.Compare(a.run, b.run) })
	atWork := make(chan struct{}, maxScrapes)
	return http.TimeoutHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case atWork <- struct{}{}:
			defer func() { <-atWork }()
		default:
			http.Error(w, "too many requests at the same time, try again later", http.StatusServiceUnavailable)
			return
		}
		all := families{}
		for _, e := range runs {
			e.collect(all)
		}
		all.answer(w, r)
	}), scrapeTimeout, "the metrics took too long")
}

// Listen opens an address, such as 127.0.0.1:9464, for at most 64 connections at a time.
func Listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return netutil.LimitListener(l, maxConnections), nil
}

// Serve answers until Close.
func (e *Exporter) Serve(l net.Listener) error {
	if err := e.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close ends all connections and the listener.
func (e *Exporter) Close() error { return e.server.Close() }

// Line takes the numbers of the newest line, by their names in files. They must not be changed any more.
func (e *Exporter) Line(line []stat.Sample) { e.line.Store(&line) }

// collect adds each metric with its newest value. Of two that Prometheus cannot tell apart, it adds the first in the order of names.
func (e *Exporter) collect(to families) {
	found := map[string]sample{}
	e.stats.Each(func(name string, c *stat.Counter) {
		found[name] = sample{kind: dto.MetricType_COUNTER, value: float64(c.Value())}
	}, func(name string, g *stat.Gauge) {
		found[name] = sample{kind: dto.MetricType_GAUGE, value: g.Value()}
	}, func(name string, h *stat.Histogram) {
		d := h.Snapshot()
		found[name] = sample{kind: dto.MetricType_SUMMARY, distribution: &d}
	})
	e.addLine(found)
	sent := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		s := found[name]
		d := e.describe(name, s)
		key := d.key()
		if family := to.of(&d, s.kind); family != nil && !sent[key] {
			family.Metric, sent[key] = append(family.Metric, d.metric(s)), true
		}
	}
}

// addLine adds what the newest line alone has.
func (e *Exporter) addLine(found map[string]sample) {
	line := e.line.Load()
	if line == nil {
		return
	}
	flat := map[string]bool{} // names of the parts of histograms
	for name, s := range found {
		if s.distribution == nil {
			continue
		}
		for _, suffix := range metrics.Suffixes {
			flat[name+suffix.Ending] = true
		}
		if strings.HasPrefix(name, "env/") {
			delete(found, name) // the line has the mean of those since the line before
		}
	}
	for _, m := range *line {
		if _, live := found[m.Name]; live || flat[m.Name] {
			continue
		}
		kind := dto.MetricType_GAUGE
		if described, _, ok := metrics.Find(m.Name); ok && described.Kind == metrics.Total {
			kind = dto.MetricType_COUNTER
		}
		found[m.Name] = sample{kind: kind, value: m.Value}
	}
}

// sample is the value of a metric: one number, or a distribution.
type sample struct {
	kind         dto.MetricType
	value        float64
	distribution *stat.Distribution
}

// description is what Prometheus calls a metric.
type description struct {
	name, help string
	labels     map[string]string
	scale      float64 // of a value, to base units
}

// describe returns the description of a metric by its name in files.
func (e *Exporter) describe(name string, s sample) description {
	d := description{help: "Of a component or module of your own.", labels: map[string]string{"run": e.run}, scale: 1}
	words := strings.Split(name, "/")
	inFiles := name
	if s.distribution != nil {
		inFiles += "_count"
	}
	if m, policy, ok := metrics.Find(inFiles); ok {
		d.help = m.Meaning + "."
		words, d.labels = m.Split(strings.TrimPrefix(name, policy+"/"))
		d.labels["run"] = e.run
		if m.OfPolicy() || policy != "" {
			d.labels["policy"] = cmp.Or(policy, e.policy)
		}
		words, d.scale = inBaseUnit(words, m.Unit)
	}
	d.name = legal("rlhost_" + strings.Join(words, "_"))
	if s.distribution == nil && s.kind == dto.MetricType_COUNTER {
		d.name = strings.TrimSuffix(d.name, "_total") + "_total"
	}
	return d
}

// inBaseUnit ends a name with its unit, as Prometheus wants it, and returns what a value is multiplied by for that.
func inBaseUnit(words []string, unit string) ([]string, float64) {
	last := len(words) - 1
	switch unit {
	case "ns":
		words[last] = strings.TrimSuffix(words[last], "_ns") + "_seconds"
		return words, 1e-9
	case "s":
		words[last] = strings.TrimSuffix(words[last], "_seconds") + "_seconds"
	case "bytes":
		words[last] = strings.TrimSuffix(words[last], "_bytes") + "_bytes"
	}
	return words, 1
}

// legal returns a name of small letters, digits and "_".
func legal(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, name)
}

// key is equal for two metrics that Prometheus cannot tell apart.
func (d *description) key() string {
	names, values := d.sorted()
	return d.name + "\x00" + strings.Join(names, "\x00") + "\x00" + strings.Join(values, "\x00")
}

// sorted returns the labels' names and their values.
func (d *description) sorted() (names, values []string) {
	for _, name := range slices.Sorted(maps.Keys(d.labels)) {
		names, values = append(names, name), append(values, strings.ToValidUTF8(d.labels[name], "\uFFFD"))
	}
	return names, values
}

// metric returns a metric with its value.
func (d *description) metric(s sample) *dto.Metric {
	m := new(dto.Metric)
	names, values := d.sorted()
	for i := range names {
		m.Label = append(m.Label, &dto.LabelPair{Name: &names[i], Value: &values[i]})
	}
	switch value := d.scale * s.value; s.kind {
	case dto.MetricType_COUNTER:
		m.Counter = &dto.Counter{Value: &value}
	case dto.MetricType_GAUGE:
		m.Gauge = &dto.Gauge{Value: &value}
	default:
		m.Summary = d.summary(s.distribution)
	}
	return m
}

// summary has the median, and the 90th and 99th percentile; NaN where nothing was observed.
func (d *description) summary(of *stat.Distribution) *dto.Summary {
	s := &dto.Summary{SampleCount: &of.Count, SampleSum: new(d.scale * of.Sum)}
	for _, q := range []float64{0.5, 0.9, 0.99} {
		value := math.NaN()
		if of.Count > 0 {
			value = d.scale * of.Quantile(q)
		}
		s.Quantile = append(s.Quantile, &dto.Quantile{Quantile: &q, Value: &value})
	}
	return s
}

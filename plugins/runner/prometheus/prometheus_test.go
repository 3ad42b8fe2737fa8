package prometheus_test

import (
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/plugins/runner/prometheus"
)

// serve serves a registry on a free port, and returns the address.
func serve(t *testing.T, stats *stat.Registry) (*prometheus.Exporter, string) {
	t.Helper()
	l, err := prometheus.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := prometheus.New("pole/0003", "main", stats)
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := e.Serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		ended.Wait()
	})
	return e, l.Addr().String()
}

// scrape reads the metrics as Prometheus does, with its own parser.
func scrape(t *testing.T, address string) map[string]*dto.MetricFamily {
	t.Helper()
	r, err := http.Get("http://" + address + prometheus.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(r.Body)
		t.Fatalf("%s: %s", r.Status, text)
	}
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// written returns a metric as a text, such as counter a="b" 1.
func written(m *dto.Metric, kind dto.MetricType) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(kind.String()))
	for _, l := range m.GetLabel() {
		b.WriteString(" " + l.GetName() + "=" + l.GetValue())
	}
	return b.String()
}

func TestExporter_NamesByTheConventions(t *testing.T) {
	stats := stat.NewRegistry()
	stats.Counter("rollout/env_steps").Add(7)
	stats.Counter("rollout/carried_bytes").Add(5)
	stats.Counter("process/deaths/shaper").Inc()
	stats.Counter("version/0a1b2c3d/faults").Inc()
	stats.Counter("shaper/faults").Inc()
	stats.Counter("shaper/purses_total").Inc()
	stats.Gauge("rival/charts/episodic_return").Set(math.NaN())
	stats.Gauge("Größe/a-b").Set(2)
	stats.Histogram("swap/pause_ns").Observe(2e9)
	stats.Histogram("env/goals").Observe(3)
	stats.Gauge("odd/\xff\xfe").Set(1)
	e, address := serve(t, stats)
	e.Line([]stat.Sample{
		{Name: "global_step", Value: 6}, {Name: "losses/entropy", Value: 0.5}, {Name: "rival/losses/entropy", Value: math.Inf(1)},
		{Name: "steps/dropped/fault", Value: 1}, {Name: "perf/update_seconds", Value: 0.25}, {Name: "env/goals", Value: 3}, {Name: "env/goals/left/count", Value: 1},
		{Name: "rollout/env_steps", Value: 3}, {Name: "swap/pause_ns_p99", Value: 1}, {Name: "process/deaths/\xff", Value: 1},
	})
	families := scrape(t, address)
	for name, want := range map[string]string{
		"rlhost_rollout_env_steps_total":     "counter run=pole/0003",
		"rlhost_rollout_carried_bytes_total": "counter run=pole/0003",
		"rlhost_process_deaths_total":        "counter component=shaper run=pole/0003",
		"rlhost_version_faults_total":        "counter hash=0a1b2c3d run=pole/0003",
		"rlhost_faults_total":                "counter component=shaper run=pole/0003",
		"rlhost_shaper_purses_total":         "counter run=pole/0003",
		"rlhost_charts_episodic_return":      "gauge policy=rival run=pole/0003",
		"rlhost_gr__e_a_b":                   "gauge run=pole/0003",
		"rlhost_swap_pause_seconds":          "summary run=pole/0003",
		"rlhost_global_step_total":           "counter policy=main run=pole/0003",
		"rlhost_losses_entropy":              "gauge policy=main run=pole/0003",
		"rlhost_steps_dropped_total":         "counter reason=fault run=pole/0003",
		"rlhost_perf_update_seconds":         "gauge run=pole/0003",
		"rlhost_env":                         "gauge name=goals run=pole/0003",
		"rlhost_env_count":                   "gauge name=goals/left run=pole/0003",
	} {
		f := families[name]
		if f == nil {
			t.Errorf("no %s", name)
		} else if got := written(f.GetMetric()[0], f.GetType()); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := families["rlhost_rollout_env_steps_total"].GetMetric()[0].GetCounter().GetValue(); got != 7 {
		t.Errorf("the counter is %v, want what it is now and not in the line", got)
	}
	if s := families["rlhost_swap_pause_seconds"].GetMetric()[0].GetSummary(); s.GetSampleCount() != 1 || s.GetSampleSum() != 2 || len(s.GetQuantile()) != 3 {
		t.Errorf("the summary is %v, want one of 2 s", s)
	}
	if n := len(families["rlhost_losses_entropy"].GetMetric()); n != 2 {
		t.Errorf("%d policies have an entropy, want 2", n)
	}
	if families["rlhost_swap_pause_ns_p99"] != nil {
		t.Error("a part of a histogram is a metric of its own")
	}
	if n := len(families["rlhost_process_deaths_total"].GetMetric()); n != 1 {
		t.Errorf("%d processes have deaths: the line has one, as a gauge", n)
	}
}

// Two names that Prometheus could not tell apart, or of two types, must not make the rest unreadable.
func TestExporter_LeavesOutWhatWouldCollide(t *testing.T) {
	stats := stat.NewRegistry()
	stats.Counter("a/b").Inc()
	stats.Counter("a_b").Inc()
	stats.Gauge("a/b_total").Set(1)
	stats.Gauge("c/d").Set(1)
	stats.Histogram("c_d").Observe(1)
	stats.Gauge("").Set(1)
	_, address := serve(t, stats)
	families := scrape(t, address)
	if len(families) != 3 {
		t.Errorf("%d families, want 3: %v", len(families), families)
	}
	if f := families["rlhost_a_b_total"]; f.GetType() != dto.MetricType_COUNTER || len(f.GetMetric()) != 1 {
		t.Errorf("rlhost_a_b_total: %v, want one counter", f)
	}
}

func TestExporter_ServesManyAndStrangers(t *testing.T) {
	stats := stat.NewRegistry()
	e, address := serve(t, stats)
	var idle []net.Conn
	for range 40 { // they say nothing
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 20 {
				stats.Counter("rollout/env_steps").Inc()
				e.Line([]stat.Sample{{Name: "losses/entropy", Value: float64(i)}})
				scrape(t, address)
			}
		})
	}
	all.Wait()
	for _, c := range idle {
		_ = c.Close()
	}
	for _, wrong := range []struct {
		method, path string
		status       int
	}{{"GET", "/", 404}, {"GET", "/metrics/../../etc/passwd", 404}, {"POST", "/metrics", 405}, {"DELETE", "/metrics", 405}} {
		q, err := http.NewRequest(wrong.method, "http://"+address+wrong.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		if r.StatusCode != wrong.status {
			t.Errorf("%s %s: %s, want %d", wrong.method, wrong.path, r.Status, wrong.status)
		}
	}
}

package prometheus_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
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
	stats.Gauge("e/f_sum").Set(1) // before the summary that would have it
	stats.Histogram("e_f").Observe(1)
	stats.Histogram("g/h").Observe(1) // before what would be its count
	stats.Gauge("g_h_count").Set(1)
	_, address := serve(t, stats)
	families := scrape(t, address)
	if len(families) != 5 {
		t.Errorf("%d families, want 5: %v", len(families), families)
	}
	if families["rlhost_e_f_sum"].GetType() != dto.MetricType_GAUGE || families["rlhost_g_h"].GetType() != dto.MetricType_SUMMARY {
		t.Errorf("a summary and the gauge of the same name: %v", families)
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

// Each form that a client may ask for is written as its own reader wants it, compressed where the client takes that.
func TestHandler_AnswersInTheFormAskedFor(t *testing.T) {
	stats := stat.NewRegistry()
	stats.Counter("rollout/env_steps").Add(7)
	stats.Histogram("swap/pause_ns").Observe(2e9)
	_, address := serve(t, stats)
	const openMetrics, binary = "application/openmetrics-text; version=1.0.0", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
	for _, asked := range []struct {
		accept, encoding string
		kind             expfmt.FormatType
		zipped           bool
	}{
		{"", "", expfmt.TypeTextPlain, false},
		{"text/plain", "gzip;q=0", expfmt.TypeTextPlain, false},
		{"text/html, */*;q=0.1", "br, gzip;q=0.5", expfmt.TypeTextPlain, true},
		{openMetrics, "deflate, GZIP", expfmt.TypeOpenMetrics, true},
		{openMetrics, "x-gzip", expfmt.TypeOpenMetrics, false},
		{binary, "gzip", expfmt.TypeProtoDelim, true},
	} {
		q, err := http.NewRequest(http.MethodGet, "http://"+address+prometheus.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header = http.Header{"Accept": {asked.accept}, "Accept-Encoding": {asked.encoding}}
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		format := expfmt.ResponseFormat(r.Header)
		if asked.kind == expfmt.TypeOpenMetrics {
			format = expfmt.Format(r.Header.Get("Content-Type")) // its reader knows no OpenMetrics
		}
		if zipped := r.Header.Get("Content-Encoding") == "gzip"; format.FormatType() != asked.kind || zipped != asked.zipped {
			t.Errorf("%+v: %v", asked, r.Header)
		}
		body := io.Reader(r.Body)
		if asked.zipped {
			if body, err = gzip.NewReader(r.Body); err != nil {
				t.Fatalf("%+v: %v", asked, err)
			}
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatalf("%+v: %v", asked, err)
		}
		if ended := strings.HasSuffix(string(text), "\n# EOF\n"); ended != (asked.kind == expfmt.TypeOpenMetrics) {
			t.Errorf("%+v:\n%s", asked, text)
		}
		if asked.kind == expfmt.TypeOpenMetrics {
			if !strings.Contains(string(text), "# TYPE rlhost_rollout_env_steps counter\n") || !strings.Contains(string(text), "rlhost_rollout_env_steps_total{run=\"pole/0003\"} 7.0\n") {
				t.Errorf("%+v:\n%s", asked, text)
			}
			continue
		}
		names := map[string]bool{}
		for d := expfmt.NewDecoder(bytes.NewReader(text), format); ; {
			var f dto.MetricFamily
			if err := d.Decode(&f); err != nil {
				if !errors.Is(err, io.EOF) {
					t.Errorf("%+v: %v", asked, err)
				}
				break
			}
			names[f.GetName()] = true
		}
		if !names["rlhost_rollout_env_steps_total"] || !names["rlhost_swap_pause_seconds"] || len(names) != 2 {
			t.Errorf("%+v: %v", asked, names)
		}
	}
}

// Runs share families: each has its metrics in them, and one of another type is left out.
func TestHandler_ServesSeveralRuns(t *testing.T) {
	first, second := stat.NewRegistry(), stat.NewRegistry()
	first.Counter("rollout/env_steps").Add(1)
	second.Counter("rollout/env_steps").Add(2)
	first.Gauge("a/b").Set(1)
	second.Histogram("a/b").Observe(1)
	w := httptest.NewRecorder()
	prometheus.Handler(prometheus.New("one", "main", first), prometheus.New("two", "main", second)).
		ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/any", nil))
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if steps := families["rlhost_rollout_env_steps_total"].GetMetric(); len(steps) != 2 || steps[0].GetCounter().GetValue() != 1 || steps[1].GetCounter().GetValue() != 2 {
		t.Errorf("%v, want 1 and 2", steps)
	}
	if f := families["rlhost_a_b"]; f.GetType() != dto.MetricType_GAUGE || len(f.GetMetric()) != 1 {
		t.Errorf("%v, want one gauge", f)
	}
}

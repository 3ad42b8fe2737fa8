package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/dash"
	"github.com/rlhost/rlhost/pipeline/loopback"
)

// served is where a log says that Prometheus finds the metrics.
var served = regexp.MustCompile(`Prometheus finds the metrics +url=(http://\S+)`)

// A run is asked as Prometheus asks, with its own parser: all that the dashboard shows is there, also after changes of the runner.
func TestPrometheus_FindsWhatTheDashboardShows(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("served.toml", strings.Replace(plain, "[run]", "[component.runner]\nlog = [\"console\", \"prometheus\"]\nlisten = \"127.0.0.1:0\"\n[run]", 1))
	j := w.host("served.toml", "--set", "run.stop={}", "--set", "run.evaluation.every_env_steps=4096")
	urls := func() (found []string) {
		for _, m := range served.FindAllStringSubmatch(j.output.String(), -1) {
			found = append(found, m[1])
		}
		return found
	}
	j.within("it says where", func() bool { return len(urls()) == 1 })
	var families map[string]*dto.MetricFamily
	scrape := func(url string) bool {
		r, err := http.Get(url)
		if err != nil {
			return false
		}
		defer r.Body.Close()
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err = parser.TextToMetricFamilies(r.Body)
		return err == nil
	}
	j.within("a line has been written", func() bool {
		return scrape(urls()[0]) && families["rlhost_losses_entropy"] != nil && families["rlhost_eval_episodic_return"] != nil
	})
	dashboard, err := os.ReadFile("../../docs/reference/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`rlhost_[a-z_]+`).FindAllString(string(dashboard), -1)
	if len(shown) < 20 {
		t.Fatalf("the dashboard shows %d metrics", len(shown))
	}
	for _, name := range shown {
		f := families[name]
		if f == nil || f.GetHelp() == "" {
			t.Errorf("the dashboard shows %s, which no run has", name)
			continue
		}
		if f.GetType() == dto.MetricType_COUNTER != strings.HasSuffix(name, "_total") {
			t.Errorf("%s is a %s", name, f.GetType())
		}
		labels := map[string]string{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["run"] != "cartpole/0001" || strings.HasPrefix(name, "rlhost_losses_") && labels["policy"] != "main" {
			t.Errorf("%s has the labels %v", name, labels)
		}
	}
	address := strings.TrimSuffix(strings.TrimPrefix(urls()[0], "http://"), "/metrics")
	w.fails(exitFailed, []string{"train", "served.toml", "--set", "component.runner.listen=" + address}, "`listen` is "+address+", which cannot be opened", "address already in use", `listen = "127.0.0.1:0"`)
	j.reload("served.toml", "run.stop={}", "run.evaluation.every_env_steps=4096", "component.runner.listen="+address, "component.runner.every=20ms")
	testkit.Until(t, "the next runner serves at the address of the former", func() bool { return len(urls()) == 2 && scrape(urls()[1]) })
	if made := families["rlhost_rollout_env_steps_total"].GetMetric()[0].GetCounter().GetValue(); made <= 0 || urls()[0] != urls()[1] {
		t.Errorf("%v env steps, at %v", made, urls())
	}
}

// The page about runs has the newest line of each live run at /metrics, as its folder has it.
func TestPrometheus_FindsRunsOnTheirPage(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("plain.toml", plain)
	for range 2 {
		w.host("plain.toml", "--set", "run.stop={}")
	}
	server, err := dash.New(dash.Options{Dir: w.path("runs"), Metrics: newestLines, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := server.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	defer ended.Wait()
	defer stop()
	var runs []string
	testkit.Until(t, "both runs are on the page", func() bool {
		r, err := http.Get(server.URL(l) + "metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		runs = nil
		for _, m := range families["rlhost_losses_entropy"].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "run" {
					runs = append(runs, label.GetValue())
				}
			}
		}
		return slices.Equal(runs, []string{"cartpole/0001", "cartpole/0002"})
	}, &runs)
}

package otlp

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/core/trace"
)

var begun = time.Unix(1_800_000_000, 123456789)

func at(milliseconds int) time.Time { return begun.Add(time.Duration(milliseconds) * time.Millisecond) }

// way is one with all stages.
func way() trace.Way {
	return trace.Way{
		{Stage: trace.Rollout, Component: "rollout[1]", From: at(3), To: at(10), Split: 1},
		{Stage: trace.Rollout, Component: "rollout[0]", From: at(0), To: at(12)},
		{Stage: trace.Batcher, Component: "batcher", From: at(10), To: at(12), Blocks: 2},
		{Stage: trace.Learner, Component: "learner", From: at(13), To: at(30), Policy: "main", Version: 1 << 60},
		{Stage: trace.Inference, Component: "inference", From: at(31), To: at(32), Policy: "main", Version: 1 << 60},
	}
}

// readTraces reads traces as a collector does: with its own parser.
func readTraces(t *testing.T, text []byte) (list []ptrace.ResourceSpans) {
	t.Helper()
	for line := range bytes.Lines(text) {
		traces, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		if err != nil {
			t.Fatalf("%v:\n%s", err, line)
		}
		for i := range traces.ResourceSpans().Len() {
			list = append(list, traces.ResourceSpans().At(i))
		}
	}
	return list
}

// check compares a trace with that of way.
func check(t *testing.T, of ptrace.ResourceSpans) {
	t.Helper()
	if got, want := fmt.Sprint(of.Resource().Attributes().AsRaw()), "map[service.instance.id:cartpole/0001 service.name:rlhost]"; got != want {
		t.Errorf("resource %s, want %s", got, want)
	}
	spans := of.ScopeSpans().At(0).Spans()
	var got strings.Builder
	for i := range spans.Len() {
		s := spans.At(i)
		from, to := s.StartTimestamp().AsTime().Sub(begun), s.EndTimestamp().AsTime().Sub(begun)
		fmt.Fprintf(&got, "%s %v-%v %v\n", s.Name(), from, to, s.Attributes().AsRaw())
		if s.TraceID() != spans.At(0).TraceID() || s.TraceID().IsEmpty() || s.SpanID().IsEmpty() || s.Kind() != ptrace.SpanKindInternal {
			t.Errorf("span %d: trace %v, id %v, kind %v", i, s.TraceID(), s.SpanID(), s.Kind())
		}
		if parent := s.ParentSpanID(); i == 0 != parent.IsEmpty() || i > 0 && parent != spans.At(0).SpanID() {
			t.Errorf("span %d has the parent %v", i, parent)
		}
	}
	if want := `dataset 0s-32ms map[rlhost.policy:main rlhost.policy_version:1152921504606846976]
rollout 3ms-10ms map[rlhost.component:rollout[1] rlhost.split:1]
rollout 0s-12ms map[rlhost.component:rollout[0] rlhost.split:0]
batcher 10ms-12ms map[rlhost.blocks:2 rlhost.component:batcher]
learner 13ms-30ms map[rlhost.component:learner rlhost.policy:main rlhost.policy_version:1152921504606846976]
inference 31ms-32ms map[rlhost.component:inference rlhost.policy:main rlhost.policy_version:1152921504606846976]
`; got.String() != want {
		t.Errorf("spans\n%s\nwant\n%s", got.String(), want)
	}
}

// open opens an exporter; its log goes to said.
func open(t *testing.T, to, folder string) (e *Exporter, said *lockedBuffer) {
	t.Helper()
	said = &lockedBuffer{}
	e, err := Open(to, Options{Run: "cartpole/0001", Folder: folder, Log: slog.New(slog.NewTextHandler(said, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return e, said
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// A file gets a line a trace, also after the lines of an earlier process.
func TestExporter_WritesAFileThatACollectorReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		e, said := open(t, "traces.jsonl", dir)
		e.Export(way())
		if err := e.Close(); err != nil || said.Len() > 0 {
			t.Fatalf("%v, %s", err, said)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "traces.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	list := readTraces(t, text)
	if len(list) != 2 {
		t.Fatalf("%d traces", len(list))
	}
	for _, of := range list {
		check(t, of)
	}
	if a, b := traceID(list[0]), traceID(list[1]); a == b {
		t.Errorf("two traces are %v", a)
	}
}

func traceID(of ptrace.ResourceSpans) pcommon.TraceID {
	return of.ScopeSpans().At(0).Spans().At(0).TraceID()
}

// A file that is long gets a trace in a minute.
func TestExporter_LongFilesGrowSlowly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "traces.jsonl")
	e, _ := open(t, path, "")
	if err := os.Truncate(path, metrics.FullTraces+1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		e.Export(way())
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() < metrics.FullTraces+100 || info.Size() > metrics.FullTraces+4000 {
		t.Errorf("%d bytes more, %v; want those of one trace", info.Size()-metrics.FullTraces, err)
	}
}

func TestExporter_PostsToAServer(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "/", "/v1/traces"} {
		got := make(chan []byte, 1)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s of %s", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
			}
			got <- body
		}))
		e, said := open(t, server.URL+suffix, "")
		e.Export(way())
		check(t, readTraces(t, <-got)[0])
		if err := e.Close(); err != nil || said.Len() > 0 {
			t.Errorf("%v, %s", err, said)
		}
		server.Close()
	}
}

// A server that refuses, or answers nothing, costs traces: Export never waits, and the first loss is told.
func TestExporter_LosesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-held
		http.Error(w, "no room", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	e, said := open(t, server.URL, "")
	for range waiting + 5 {
		e.Export(way())
	}
	lost := e.lost.Load()
	if lost < 4 {
		t.Errorf("%d traces are lost while the server answers nothing, want those beyond the %d that wait", lost, waiting)
	}
	close(held)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := e.lost.Load(); n != waiting+5 || !strings.Contains(said.String(), "503 Service Unavailable: \\\"no room") || !strings.Contains(said.String(), "count=21") {
		t.Errorf("%d traces are lost of a server that refuses all %d:\n%s", n, waiting+5, said)
	}
}

func TestOpen_RefusesOtherPlaces(t *testing.T) {
	t.Parallel()
	if _, err := Open("gopher://there", Options{}); err == nil {
		t.Error("an address of gopher is taken")
	}
	if _, err := Open("nowhere/traces.jsonl", Options{Folder: t.TempDir()}); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

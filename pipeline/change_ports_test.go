package pipeline

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// wireOf is a pipeline in which a counter sends to a listener.
func wireOf(signal, slot string) string {
	return liveFile + fmt.Sprintf(`
[[wire]]
signal = "counter.%s"
slot = "listener.%s"
mode = "latest"
depth = 1
on_full = "coalesce"
[component.listener]
kind = "listener"
`, signal, slot)
}

const strict, more = "component.counter.strict=true", "component.counter.more=true"

func TestTransition_ToOtherPorts(t *testing.T) {
	s, parts := newStage()
	parts.Kinds["listener"] = func() component.Component { return &answerless{} }
	r := runLive(t, s, parts, wireOf("counts", "on_counts"), BuildOptions{}, strict)
	for i, g := range []*graph.Graph{
		mustParse(t, wireOf("counts", "on_sums"), parts, strict, more),
		mustParse(t, wireOf("counts", "on_counts"), parts, strict),
		mustParse(t, wireOf("more", "on_counts"), parts, strict, more),
	} {
		x, err := r.Prepare(t.Context(), g, TransitionOptions{})
		if err != nil {
			t.Fatal(i, r.because(err))
		}
		if _, err := x.Commit(t.Context()); err != nil {
			t.Fatal(i, r.because(err))
		}
		r.await(10)
		if c := r.Wires(); len(c) != 2 {
			t.Fatalf("%d: Counters %+v", i, c)
		}
		if i < 2 {
			testkit.Until(t, "what is sent to the listener", func() bool { return r.Wires()[1].Delivered > 0 })
		}
	}
	r.end()
}

// A table that takes away a port, or its payload, is refused by name while a wire uses it.
func TestTransition_PortsThatWiresUseStay(t *testing.T) {
	_, parts := newStage()
	parts.Kinds["listener"] = func() component.Component { return &answerless{} }
	for _, c := range []struct{ text, want string }{
		{wireOf("more", "on_counts"), `error[E031]: counter "counter" has no signal "more"`},
		{wireOf("counts", "on_sums"), "error[E040]: payloads differ: counter.counts sends count, listener.on_sums takes sum"},
	} {
		running := mustParse(t, c.text, parts, more)
		if next, problems := graphtest.With(running, []string{"component.counter.more=false"}, parts); next != nil || !strings.Contains(problems.Error(), c.want) {
			t.Errorf("want %s, got\n%s", c.want, problems.Error())
		}
	}
}

// Of a table that is wrong, only that is reported.
func TestParse_PortsOfAWrongTableAreNotMissed(t *testing.T) {
	_, parts := newStage()
	parts.Kinds["listener"] = func() component.Component { return &answerless{} }
	_, problems := graphtest.Parse("x.toml", []byte(wireOf("more", "on_counts")), graph.ParseOptions{Parts: parts, Sets: []string{"component.counter.more=1"}})
	if text := problems.Error(); !strings.Contains(text, "error[E003]") || strings.Contains(text, "E031") {
		t.Errorf("problems:\n%s", text)
	}
}

// Instances must have the ports that the wires were checked with.
func TestTransition_RefusesPortsThatWereNotChecked(t *testing.T) {
	s, parts := newStage()
	r := runLive(t, s, parts, liveFile, BuildOptions{})
	g := mustParse(t, liveFile, parts, "component.counter.scale=9")
	g.Component("counter").Manifest.Signals = graphtest.Ports("other", "count")
	_, err := r.Prepare(t.Context(), g, TransitionOptions{})
	if err == nil || !strings.Contains(err.Error(), "kind counter has other signals or slots than when the file was checked") {
		t.Errorf("Prepare = %v", err)
	}
	r.end()
}

// answerless listens.
type answerless struct{ component.Component }

func (*answerless) Manifest() component.Manifest {
	return component.Manifest{Slots: graphtest.Ports("on_counts", "count", "on_sums", "sum")}
}

func (*answerless) Configure(decode func(any) error) error { return decode(&struct{}{}) }

func (*answerless) Start(h *component.Host) error {
	h.Slot("on_counts", func(*hostabi.Message) {})
	h.Slot("on_sums", func(*hostabi.Message) {})
	return nil
}

func (*answerless) Stop() error { return nil }

package pipeline

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph/graphtest"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// counterOfTheFuture is a counter with other ports.
type counterOfTheFuture struct{ *counter }

func (c counterOfTheFuture) Manifest() component.Manifest {
	return component.Manifest{
		Signals: graphtest.Ports("counts", "sum", "more", "count"),
		Slots:   append(graphtest.Ports("on_more", "count"), c.counter.Manifest().Slots...),
	}
}

func (c counterOfTheFuture) Start(h *component.Host) error {
	h.Slot("on_more", func(*hostabi.Message) {})
	return c.counter.Start(h)
}

func TestTransition_ToOtherPorts(t *testing.T) {
	const wire = `
[[wire]]
signal = "counter.%s"
slot = "%s"
mode = "latest"
depth = 1
on_full = "coalesce"
[component.listener]
kind = "listener"
`
	s, parts := newStage()
	parts.Kinds["listener"] = func() component.Component { return &answerless{} }
	old := parts.Kinds["counter"]
	text := func(signal, slot string) string { return liveFile + fmt.Sprintf(wire, signal, slot) }
	r := runLive(t, s, parts, text("counts", "listener.on_counts"), BuildOptions{}, "component.counter.strict=true")
	for i, version := range []string{"future", "past", "future"} {
		g := mustParse(t, text("counts", "listener.on_counts"), parts, "component.counter.strict=true", fmt.Sprintf("component.counter.scale=%d", i))
		if version == "future" {
			parts.Kinds["counter"] = func() component.Component { return counterOfTheFuture{&counter{s: s}} }
			g = mustParse(t, text("counts", "listener.on_sums"), parts, "component.counter.strict=true", "component.counter.scale=9")
		}
		x, err := r.Prepare(t.Context(), g, TransitionOptions{})
		if err != nil {
			t.Fatal(i, r.because(err))
		}
		if _, err := x.Commit(t.Context()); err != nil {
			t.Fatal(i, r.because(err))
		}
		r.await(10)
		if c := r.Counters(); len(c) != 2 {
			t.Fatalf("%s: Counters %+v", version, c)
		}
		until(t, "what is sent to the listener", func() bool { return r.Counters()[1].Delivered > 0 })
		parts.Kinds["counter"] = old
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

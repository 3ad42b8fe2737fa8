package pipeline

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// stuck is a sink that is at its first message until the test lets it go.
type stuck struct {
	sink
	at, free chan struct{}
}

func (s *stuck) Start(h *component.Host) error {
	err := s.sink.Start(h)
	h.Receiver.Control(func(*hostabi.Message) {
		close(s.at)
		<-s.free
	}, hostabi.Message{})
	return err
}

// yielding is a stuck sink that ends when it is cut, and reports when it is stopped.
type yielding struct {
	stuck
	over chan struct{}
	late bool // it was cut after it had been stopped
}

func (y *yielding) Cut() {
	select {
	case <-y.over:
		y.late = true
	default:
	}
}

func (y *yielding) Stop() error {
	close(y.over)
	return y.stuck.Stop()
}

// lingering is a source whose Cut lets a sink go and returns when that has been stopped.
type lingering struct {
	ticker
	sink *yielding
}

func (l *lingering) Cut() {
	close(l.sink.free)
	<-l.sink.over
}

// A run may end while its components are being cut: components that have been stopped meanwhile are not cut.
func TestRun_CutsNoStoppedComponent(t *testing.T) {
	w, parts := newWorld()
	y := &yielding{stuck: stuck{sink: sink{w: w}, at: make(chan struct{}), free: make(chan struct{})}, over: make(chan struct{})}
	parts.Kinds["yielding"] = func() component.Component { return y }
	parts.Kinds["lingering"] = func() component.Component { return &lingering{ticker: ticker{w: w}, sink: y} }
	text := tickFile("[component.source]\nkind = \"lingering\"\n[component.sink]\nkind = \"yielding\"\n")
	p, err := Build(t.Context(), mustParse(t, text, parts), BuildOptions{Parts: parts})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-y.at
		p.StopNow(component.StopInterrupted)
	}()
	if reason, err := p.Run(t.Context()); reason != component.StopInterrupted || err != nil {
		t.Errorf("Run = %q, %v", reason, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if y.late {
		t.Error("a component was cut after it had been stopped")
	}
}

// A component that cannot be made to end is left running: the run ends without it, and it is stopped when it has ended.
func TestRun_LeavesAStuckComponentRunning(t *testing.T) {
	w, parts := newWorld()
	at, free := make(chan struct{}), make(chan struct{})
	parts.Kinds["stuck"] = func() component.Component { return &stuck{sink: sink{w: w}, at: at, free: free} }
	text := tickFile("[component.source]\nkind = \"ticker\"\n[component.sink]\nkind = \"stuck\"\n")
	p, err := Build(t.Context(), mustParse(t, text, parts), BuildOptions{Parts: parts, Grace: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-at
		cancel()
	}()
	if reason, err := p.Run(ctx); reason != component.StopInterrupted || err != nil {
		t.Errorf("Run = %q, %v", reason, err)
	}
	if left := p.LeftBehind(); !slices.Equal(left, []string{"sink"}) {
		t.Errorf("left behind: %v", left)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	stopped := func() []string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.Clone(w.stopped)
	}
	if list := stopped(); !slices.Equal(list, []string{"source"}) {
		t.Errorf("stopped while the sink is at its message: %v", list)
	}
	close(free)
	testkit.Until(t, "the sink is stopped", func() bool { return slices.Contains(stopped(), "sink") })
	<-p.behind
}

package pipeline

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// farBin is a bin that says it runs in a process.
type farBin struct {
	bin
	far *far
}

// far is shared by a test and its farBin.
type far struct {
	state      atomic.Value // string
	unfinished atomic.Int64
	took       atomic.Int64
}

func (b *farBin) Process() component.Process {
	return component.Process{PID: 42, State: b.far.state.Load().(string), Unfinished: int(b.far.unfinished.Load())}
}

func (b *farBin) CatchUp() {}

func (b *farBin) GiveUp(error)  {}
func (b *farBin) Dismiss(error) {}

func (b *farBin) Start(h *component.Host) error {
	if err := b.bin.Start(h); err != nil {
		return err
	}
	h.Slot("on_trajectories", func(m *hostabi.Message) {
		b.take(m)
		b.far.took.Add(1)
	})
	return nil
}

// farAway runs a pipeline with a learner in a process.
func farAway(t *testing.T) (*far, *Pipeline) {
	t.Helper()
	f := &far{}
	f.state.Store(component.ProcessRunning)
	_, parts := newWorld()
	parts.Kinds["cutter"] = func() component.Component { return &cutter{} }
	parts.Kinds["bin"] = func() component.Component { return &farBin{far: f} }
	p, err := Build(t.Context(), mustParse(t, bins, parts), BuildOptions{Parts: parts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	startRun(t, p)
	return f, p
}

func TestStatus_LooksIntoProcesses(t *testing.T) {
	f, p := farAway(t)
	testkit.Until(t, "trajectories", func() bool { return f.took.Load() > 10 })
	if s := statusOf(t, p, "learner"); s.Host != "pid 42" || s.State != control.Running {
		t.Errorf("%+v", s)
	}
	pause(t, p, "rollout")
	testkit.Until(t, "an empty wire", func() bool { return p.Wires()[0].Queued == 0 })
	f.unfinished.Store(3)
	p.watch.snapshot(time.Now())
	s := p.watch.snapshot(later())
	d := s.describe(1)
	if d.State != control.Stalled || !strings.HasPrefix(d.Note, "its process has not finished with a message for ") || d.WaitsFor != "" {
		t.Errorf("%+v", d)
	}
	if got := s.Cause(); !strings.HasPrefix(got, "learner has a process, pid 42, that has not finished with a message for ") {
		t.Errorf("cause %q", got)
	}
	for state, want := range map[string]control.State{"restarting": control.Lost, component.ProcessFailed: control.Failed, component.ProcessStarting: control.Ready} {
		f.state.Store(state)
		if d := statusOf(t, p, "learner"); d.State != want || d.Note != "its process is "+state {
			t.Errorf("%s: %+v", state, d)
		}
	}
	f.state.Store("restarting")
	if got := p.watch.snapshot(later()).Cause(); got != "learner has no process: it is restarting" {
		t.Errorf("cause %q", got)
	}
}

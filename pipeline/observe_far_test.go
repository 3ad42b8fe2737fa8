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

// far is what a test and its farBin share.
type far struct {
	state      atomic.Value // string
	unfinished atomic.Int64
	dies       atomic.Bool // what it trains on next is not told
	took       atomic.Int64
}

func (b *farBin) Process() component.Process {
	return component.Process{PID: 42, State: b.far.state.Load().(string), Unfinished: int(b.far.unfinished.Load())}
}

func (b *farBin) CatchUp() {}

func (b *farBin) Start(h *component.Host) error {
	if err := b.bin.Start(h); err != nil {
		return err
	}
	h.Slot("on_trajectories", func(m *hostabi.Message) {
		if b.n%3 == 2 && b.far.dies.Swap(false) {
			b.n++
			h.Stats.Counter("process/deaths/" + h.Name).Inc()
			return
		}
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

func TestSteps_WhatADeadProcessHasNotToldIsAReasonOfItsOwn(t *testing.T) {
	f, p := farAway(t)
	for range 3 {
		before := p.Steps().Reasons["process"]
		f.dies.Store(true)
		testkit.Until(t, "the death", func() bool { return !f.dies.Load() })
		took := f.took.Load()
		testkit.Until(t, "more trajectories", func() bool { return f.took.Load() > took+10 })
		pause(t, p)
		s := p.Steps()
		if s.Made != s.Trained+s.Dropped+s.UnderWay || s.Reasons["process"] <= before || s.Reasons["process"] > before+8 {
			t.Errorf("after a death: %+v, %d lost before", s, before)
		}
		if again := p.Steps(); again.Reasons["process"] != s.Reasons["process"] {
			t.Errorf("asked again: %+v, before %+v", again, s)
		}
		resume(t, p)
	}
}

// What moves may make up for what a dead process has lost, for a moment: that they add up then settles nothing, and once nothing moves
// they add up for good.
func TestSteps_AMomentOfBalanceProvesNothing(t *testing.T) {
	f, p := farAway(t)
	testkit.Until(t, "trajectories", func() bool { return f.took.Load() > 10 })
	pause(t, p)
	before := p.Steps()
	for _, moving := range []struct {
		counter string // that shows a moment early what stepsMade shows later
		lost    int64
	}{{"lag/dropped_rows", 4}, {component.CounterTrained, 12}} {
		p.Stats().Counter("process/deaths/learner").Inc()
		p.Stats().Counter("rollout/env_steps").Add(uint64(moving.lost)) // which the process has died with
		p.Stats().Counter(moving.counter).Add(uint64(moving.lost))      // of others that are not counted as made yet
		if s := p.Steps(); missing(&s) != 0 {
			t.Fatalf("%+v do not balance: the test has no moment to look at", s)
		}
		p.Stats().Counter("rollout/env_steps").Add(uint64(moving.lost))
		if s := p.Steps(); missing(&s) != 0 || s.Reasons["process"] != before.Reasons["process"]+uint64(moving.lost) {
			t.Errorf("%+v, want %d more that are lost with a process than %+v", s, moving.lost, before)
		}
		before = p.Steps()
	}
	p.Stats().Counter(component.CounterTrained).Add(7) // the process was alive, and its report late
	if s := p.Steps(); missing(&s) != 0 || s.Reasons["process"] != before.Reasons["process"]-7 {
		t.Errorf("%+v, want 7 fewer that are lost with a process than %+v", s, before)
	}
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

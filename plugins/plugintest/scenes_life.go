package plugintest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

func sceneState(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Table: map[string]any{"label": "x", "scale": int64(3)}})
	for i := range uint64(10) {
		a.tell(OpAdd, i+1<<40, 0)
	}
	a.ask(OpEcho, 0, 0)
	state := a.Saved()
	count, history := a.ask(OpCount, 0, 0), a.ask(OpHistory, 0, 0)
	a.Close()
	b := play(t, h, StageOptions{Name: "other", Table: map[string]any{"label": "x", "scale": int64(3)},
		Before: func(c component.Component) error { return c.Restore(state) }})
	b.expect("count after restore", b.ask(OpCount, 0, 0), count)
	b.expect("history after restore", b.ask(OpHistory, 0, 0), history)
	b.expect("history", math.Float64frombits(history[0]), 9.0) // three more messages came after
}

func sceneForeignState(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Table: map[string]any{"label": "x"}})
	state := a.Saved()
	a.Close()
	restore := func(s component.State) error {
		var refused error
		b := play(t, h, StageOptions{Name: "other", Table: map[string]any{"label": "y"},
			Before: func(c component.Component) error { refused = c.Restore(s); return nil }})
		b.expect("count after a refusal", b.ask(OpCount, 0, 0), [2]uint64{1, 0})
		return refused
	}
	if err := restore(state); err == nil || !strings.Contains(err.Error(), "label") {
		t.Errorf("restore of another label: %v, want an error about the label", err)
	}
	if err := restore(component.State{Blobs: map[string][]byte{component.OpaqueBlob: []byte("garbage")}}); err == nil {
		t.Error("restore of garbage: no error")
	}
}

func sceneReports(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	for i := range uint64(5) {
		a.ask(OpStat, i+1, math.Float64bits(float64(i)*2))
	}
	a.tell(OpLog, 4711, 0)
	a.Until("the metrics", func() bool {
		d := a.Host.Stats.Histogram("probe/histogram").Snapshot()
		return a.Host.Stats.Counter("probe/told").Value() == 15 && a.Host.Stats.Gauge("probe/gauge").Value() == 8 &&
			d.Count == 5 && d.Sum == 20 && d.Max == 8
	})
	a.Until("the log line", func() bool { return strings.Contains(a.Log(), "probe says 4711") })
	for line := range strings.Lines(a.Log()) {
		if strings.Contains(line, "4711") && (!strings.Contains(line, "level=WARN") || !strings.Contains(line, "component=probe")) {
			t.Errorf("log line %s", line)
		}
	}
}

func sceneHost(t *testing.T, h *RuntimeHarness) {
	for _, synchronous := range []bool{false, true} {
		boundary := func(s *Stage) {
			if _, err := s.Component.Snapshot(); err != nil {
				s.t.Errorf("snapshot at a boundary: %v", err)
			}
		}
		a := play(t, h, StageOptions{Boundary: boundary, Synchronous: synchronous})
		for i := range 5 {
			a.tell(OpAdd, 1, 0)
			a.ask(OpBoundary, 0, 0)
			a.mu.Lock()
			a.expect("boundaries", a.boundaries, i+1)
			a.mu.Unlock()
		}
		a.tell(OpStop, hostabi.LinkStopEnvSteps, 0)
		a.tell(OpStop, hostabi.LinkStopReturn, 0)
		a.tell(OpStop, hostabi.LinkStopOwn, 0)
		a.Until("the stops", func() bool {
			return slices.Equal(a.Stops(), []component.StopReason{component.StopEnvSteps, component.StopReturn, component.StopOwn})
		})
		a.Close()
	}
}

func sceneFails(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{})
	a.tell(OpFail, 0, 0)
	err := a.Failure()
	if err == nil || !strings.Contains(err.Error(), "told to fail") || !strings.Contains(err.Error(), "probe") {
		t.Errorf("error %v, want one of the probe that says: told to fail", err)
	}
}

func sceneStops(t *testing.T, h *RuntimeHarness) {
	a := play(t, h, StageOptions{Table: map[string]any{"blocks": int64(16)}})
	x := a.Arena(16, 4096, nil)
	for i := range 300 {
		a.tell(OpMake, uint64(i), 1)
		a.tell(OpBurst, 20, 0)
		a.tell(OpAsk, 1, 0)
		a.handIfFree(x)
		if i == 100 {
			a.Next("numbers")
		}
	}
	a.Close()
	if strings.Contains(a.Log(), "did not stop in time") {
		t.Errorf("a component that waits in an emit delays its own stop:\n%s", a.Log())
	}
}

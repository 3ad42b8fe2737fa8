package ctest

import (
	"context"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// A timer is called once, or until it is cancelled, also between messages that never end.
func TestTimers_AreCalledOnceAndEachSoOftenUntilTheyAreCancelled(t *testing.T) {
	program := spawn.Program{Name: "timers", Path: Build(t, Plugin, "../testdata/timers.c")}
	c, err := proxy.New(context.Background(), newRuntime(t), program, "timers")
	if err != nil {
		t.Fatal(err)
	}
	s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: "timers"})
	queue := bus.Options{Mode: bus.Queue, Depth: 16, Overflow: bus.Block}
	ask := s.To("on_ask", false, queue)
	s.From("told", false, queue)
	if m := s.Next("told"); m.Inline != [2]uint64{1, 1} {
		t.Fatalf("told %v first, want that the timer without a time was called", m.Inline)
	}
	ticks := uint64(0)
	for ticks < 5 {
		if err := ask.Emit(hostabi.Message{}); err != nil {
			t.Fatal(err)
		}
		m := s.Next("told")
		if m.Inline[0] == 2 { // the answer comes too
			if m.Inline[1] != 5 {
				t.Errorf("it was cancelled at tick %d, want 5", m.Inline[1])
			}
			m = s.Next("told")
		}
		if wrong := m.Inline[1] & 0xffffffff; m.Inline[0] != 3 || wrong != 0 {
			t.Fatalf("told %v: %d went wrong", m.Inline, wrong)
		}
		ticks = m.Inline[1] >> 32
	}
	if ticks != 5 {
		t.Errorf("%d ticks, want 5", ticks)
	}
}

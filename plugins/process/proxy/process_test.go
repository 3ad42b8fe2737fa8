package proxy

import (
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
)

func TestProcess_TellsWhatAProcessIsNotFinishedWith(t *testing.T) {
	c := newProbe(t, spawntest.Self(t, "probe"))
	if p := c.Process(); p != (component.Process{}) {
		t.Errorf("before its start: %+v", p)
	}
	m := newPress(t, c)
	m.turn(0)
	m.quiet()
	p := c.Process()
	if p.PID == 0 || p.Holder == 0 || p.State != component.ProcessRunning {
		t.Errorf("it runs, and tells %+v", p)
	}
	freeze(t, p.PID)
	for i := range 5 {
		m.turn(i)
	}
	testkit.Until(t, "unfinished messages", func() bool { return c.Process().Unfinished > 0 })
	if err := unix.Kill(p.PID, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	m.quiet()
	testkit.Until(t, "no unfinished messages", func() bool { return c.Process().Unfinished == 0 })
}

// A process that replaces a dead one begins environments with new random streams.
func TestProcess_KnowsThatItBeginsAgain(t *testing.T) {
	begun := 4
	x := &shared{h: &component.Host{Run: &component.Run{}, Log: slog.New(slog.DiscardHandler),
		Succession: component.Succession{Begun: 2, Again: func() int { begun++; return begun }}}}
	for session, want := range []int{2, 5, 6} {
		if got := x.configuration(1).Begun; got != want {
			t.Errorf("process %d is told %d, want %d", session, got, want)
		}
	}
}

package process

import (
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
)

func TestProcess_TellsWhatAProcessIsNotFinishedWith(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	c := harness(r, self(t, "probe")).New(t)
	told, ok := c.(interface{ Process() (int, string, int) })
	if !ok {
		t.Fatalf("%T does not tell its process", c)
	}
	if pid, _, unfinished := told.Process(); pid != 0 || unfinished != 0 {
		t.Errorf("before its start: pid %d, %d unfinished", pid, unfinished)
	}
	m := newPress(t, c)
	m.turn(0)
	m.quiet()
	pid, state, _ := told.Process()
	if want := statusOf(t, r, "press").PID; pid != want || pid == 0 || state != stateRunning {
		t.Errorf("pid %d, state %q, want %d, %q", pid, state, want, stateRunning)
	}
	freeze(t, pid)
	for i := range 5 {
		m.turn(i)
	}
	waitFor(t, func() bool { _, _, unfinished := told.Process(); return unfinished > 0 })
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	m.quiet()
	waitFor(t, func() bool { _, _, unfinished := told.Process(); return unfinished == 0 })
}

// A process that takes the place of one that died begins environments with random streams that nobody has had.
func TestProcess_IsToldThatItBeginsAgain(t *testing.T) {
	begun := 4
	x := &proxy{h: &component.Host{Run: &component.Run{}, Log: slog.New(slog.DiscardHandler), Begun: 2,
		Again: func() int { begun++; return begun }}}
	for life, want := range []int{2, 5, 6} {
		if got := x.configuration(1).Begun; got != want {
			t.Errorf("process %d is told %d, want %d", life, got, want)
		}
	}
}

package process

import (
	"testing"

	"golang.org/x/sys/unix"
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

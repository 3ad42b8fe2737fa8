package ctest

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process"
)

// newRuntime returns a runtime of native plugins that is closed at the end of the test.
func newRuntime(t testing.TB) *process.Runtime {
	t.Helper()
	r, err := process.New(process.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// TestRuntime_PluginsInC runs what all runtimes promise with the probe in C.
func TestRuntime_PluginsInC(t *testing.T) {
	program := process.Program{Name: "probe", Path: Build(t, Plugin, "../testdata/probe.c")}
	r := newRuntime(t)
	plugintest.TestRuntime(t, plugintest.RuntimeHarness{
		New: func(t testing.TB) component.Component {
			c, err := r.Component(context.Background(), program, "probe")
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Kill:   func(t testing.TB, name string) { killPlugin(t, r, name) },
		Settle: func(t testing.TB, name string) { settle(t, r, name) },
		Slow:   true,
	})
}

// killPlugin waits until a component has a process, kills it, and returns when it is dead.
func killPlugin(t testing.TB, r *process.Runtime, name string) {
	t.Helper()
	fd, err := unix.PidfdOpen(pidOf(t, r, name), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10000); err != nil {
		t.Fatal(err)
	}
}

// settle waits until the process of a component sleeps: what it had to say of what it has finished with is said by
// then. A process that never sleeps is not waited for.
func settle(t testing.TB, r *process.Runtime, name string) {
	t.Helper()
	file := fmt.Sprintf("/proc/%d/stat", pidOf(t, r, name))
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(file)
		if _, state, ok := bytes.Cut(stat, []byte(") ")); err == nil && ok && state[0] == 'S' {
			return
		}
	}
}

// pidOf returns the process of a component, which may just be starting again.
func pidOf(t testing.TB, r *process.Runtime, name string) int {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, s := range r.Running() {
			if s.Component == name && s.PID != 0 {
				return s.PID
			}
		}
	}
	t.Fatalf("%s has no process", name)
	return 0
}

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
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// newRuntime returns a runtime of native plugins that is closed at the end of the test.
func newRuntime(t testing.TB) *spawn.Runtime {
	t.Helper()
	r, err := spawn.New(spawn.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
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

// TestRuntime_PluginsInC runs the runtimes' conformance suite with the probe in C.
func TestRuntime_PluginsInC(t *testing.T) {
	program := spawn.Program{Name: "probe", Path: Build(t, Plugin, "../testdata/probe.c")}
	r := newRuntime(t)
	plugintest.TestRuntime(t, plugintest.RuntimeHarness{
		New: func(t testing.TB) component.Component {
			c, err := proxy.New(context.Background(), r, program, "probe")
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Kill:   killPlugin,
		Settle: settle,
		Slow:   true,
	})
}

// killPlugin waits until a component has a process, kills it, and returns when it is dead.
func killPlugin(t testing.TB, name string) {
	t.Helper()
	fd, err := unix.PidfdOpen(pidOf(t, name), 0)
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

// settle waits until the process of a component sleeps: by then it has acknowledged its finished messages. It does not
// wait for a process that never sleeps.
func settle(t testing.TB, name string) {
	t.Helper()
	file := fmt.Sprintf("/proc/%d/stat", pidOf(t, name))
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(file)
		if _, state, ok := bytes.Cut(stat, []byte(") ")); err == nil && ok && state[0] == 'S' {
			return
		}
	}
}

// pidOf returns the process of a component, which may just be starting again.
func pidOf(t testing.TB, name string) int {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		list, err := spawn.Find(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range list {
			if found.Component == name {
				return found.PID
			}
		}
	}
	t.Fatalf("%s has no process", name)
	return 0
}

package ctest

import (
	"context"
	"log/slog"
	"os"
	"testing"

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
		Slow: true,
	})
}

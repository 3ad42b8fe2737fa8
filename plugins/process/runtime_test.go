package process

import (
	"context"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/plugintest"
	sdk "github.com/rlhost/rlhost/sdk/process"
)

// serveProbe is the probe as a plugin in Go.
func serveProbe() {
	sdk.Serve(sdk.Plugin{
		Kinds: map[string]func() component.Component{"probe": plugintest.NewProbe},
		Docs:  map[string]string{"probe": "does as it is told"},
	})
}

// harness returns the harness of a program that has the kind probe.
func harness(r *Runtime, p Program) plugintest.RuntimeHarness {
	return plugintest.RuntimeHarness{
		New: func(t testing.TB) component.Component {
			c, err := r.Component(context.Background(), p, "probe")
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Kill: func(t testing.TB, component string) { killProcess(t, r, component) },
		Settle: func(t testing.TB, component string) {
			waitFor(t, func() bool { return statusOf(t, r, component).Unfinished == 0 })
		},
	}
}

// killProcess kills the process of a component and waits until the next one has begun.
func killProcess(t testing.TB, r *Runtime, component string) {
	t.Helper()
	before := statusOf(t, r, component)
	waitFor(t, func() bool { before = statusOf(t, r, component); return before.PID != 0 })
	if err := unix.Kill(before.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		now := statusOf(t, r, component)
		return now.Restarts > before.Restarts && now.PID != 0 && now.PID != before.PID || now.State == stateFailed
	})
}

func statusOf(t testing.TB, r *Runtime, component string) Status {
	t.Helper()
	for _, s := range r.Running() {
		if s.Component == component {
			return s
		}
	}
	t.Fatalf("component %s does not run", component)
	return Status{}
}

func TestRuntime_Go(t *testing.T) {
	r, _ := newRuntime(t, Options{})
	h := harness(r, self(t, "probe"))
	h.Rests = true
	plugintest.TestRuntime(t, h)
}

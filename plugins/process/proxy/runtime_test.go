package proxy

import (
	"context"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
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
func harness(r *spawn.Runtime, p spawn.Program) plugintest.RuntimeHarness {
	return plugintest.RuntimeHarness{
		New:  func(t testing.TB) component.Component { return newProxy(t, r, p, "probe") },
		Kill: func(t testing.TB, name string) { killProcess(t, r, name) },
		Settle: func(t testing.TB, name string) {
			rig.Until(t, func() bool { return statusOf(t, r, name).Unfinished == 0 })
		},
	}
}

// killProcess kills the process of a component and waits until the next one has begun.
func killProcess(t testing.TB, r *spawn.Runtime, name string) {
	t.Helper()
	before := statusOf(t, r, name)
	rig.Until(t, func() bool { before = statusOf(t, r, name); return before.PID != 0 })
	if err := unix.Kill(before.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	rig.Until(t, func() bool {
		now := statusOf(t, r, name)
		return now.Restarts > before.Restarts && now.PID != 0 && now.PID != before.PID || now.State == component.ProcessFailed
	})
}

// made are the proxies of each runtime, in the order in which they were made.
var made sync.Map // of *Runtime to *[]*proxy

// newProxy returns the proxy of an instance, which statusOf finds by its name from its start on.
func newProxy(t testing.TB, r *spawn.Runtime, p spawn.Program, kind string) *proxy {
	t.Helper()
	c, err := New(context.Background(), r, p, kind)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := made.LoadOrStore(r, new([]*proxy))
	*list.(*[]*proxy) = append(*list.(*[]*proxy), c.(*proxy))
	return c.(*proxy)
}

func statusOf(t testing.TB, r *spawn.Runtime, name string) component.Process {
	t.Helper()
	list, _ := made.Load(r)
	for _, x := range slices.Backward(*list.(*[]*proxy)) {
		if x.h != nil && x.h.Name == name {
			return x.Process()
		}
	}
	t.Fatalf("component %s does not run", name)
	return component.Process{}
}

func TestRuntime_Go(t *testing.T) {
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	h := harness(r, spawntest.Self(t, "probe"))
	h.Rests = true
	plugintest.TestRuntime(t, h)
}

package proxy

import (
	"context"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/author/authortest"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	author "github.com/rlhost/rlhost/sdk/component"
	sdk "github.com/rlhost/rlhost/sdk/process"
	"github.com/rlhost/rlhost/sdk/sdktest/scribe"
)

// serveProbe is the probe as a plugin in Go.
func serveProbe() { serveKind(plugintest.NewProbe) }

// serveUnpausable is a probe that cannot be told to pause.
func serveUnpausable() {
	serveKind(func() component.Component { return struct{ component.Component }{plugintest.NewProbe()} })
}

func serveKind(probe func() component.Component) {
	sdk.Serve(sdk.Plugin{
		Kinds: map[string]func() component.Component{"probe": probe},
		Docs:  map[string]string{"probe": "does as it is told"},

		Components: map[string]func() author.Component{"scribe": scribe.New},
	})
}

// newProxy returns the proxy of an instance that has not been configured.
func newProxy(t testing.TB, r *spawn.Runtime, p spawn.Program, kind string) *proxy {
	t.Helper()
	c, err := New(context.Background(), r, p, kind)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*proxy)
}

// newProbe returns the proxy of a program's probe, in a new runtime.
func newProbe(t testing.TB, p spawn.Program) *proxy {
	t.Helper()
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	return newProxy(t, r, p, "probe")
}

func TestRuntime_Go(t *testing.T) {
	plugintest.TestRuntime(t, plugintest.RuntimeHarness{
		New:   func(t testing.TB) component.Component { return newProbe(t, spawntest.Self(t, "probe")) },
		Rests: true,
	})
}

func TestAuthored_InAProcess(t *testing.T) {
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	authortest.TestRuntime(t, func(t testing.TB) component.Component {
		return newProxy(t, r, spawntest.Self(t, "probe"), "scribe")
	})
}

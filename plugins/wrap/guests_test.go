package wrap_test

import (
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// guests loads environments that rlhost brings along, with wrappers around them.
func guests(t *testing.T) (load func(t *testing.T, name string, list []env.Wrapper) (env.Plugin, error)) {
	t.Helper()
	r, err := wasm.New(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(t *testing.T, name string, list []env.Wrapper) (env.Plugin, error) {
		p, err := r.Load(t.Context(), name, plugins.Builtins()[name], env.Source{Name: "test", Use: name})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return wrap.New(p, numbers(list), nil)
	}
}

// Modules keep the promises of environments with wrappers around them: vectors, Boxes, pictures, agents that take turns or drop
// out, and groups of them.
func TestWrapped_GuestsKeepThePromisesOfEnvironments(t *testing.T) {
	load := guests(t)
	for _, name := range []string{"cartpole@1", "pendulum@1", "taxi@1", "snake@1", "connectfour@1", "tag@1"} {
		t.Run(name, func(t *testing.T) {
			p, err := load(t, name, []env.Wrapper{{"time_limit": 6}, {"reward_scale": 0.5}, {"reward_clip": 1}})
			if err != nil {
				t.Fatal(err)
			}
			plugintest.TestEnv(t, p, plugintest.Options{Seed: 3, Steps: 120})
		})
	}
}

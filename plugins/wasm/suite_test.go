package wasm

import (
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func TestEnv_KeepsThePromises(t *testing.T) {
	for name, source := range exampleGuests(t, "") {
		t.Run(name, func(t *testing.T) {
			p := load(t, newRuntime(t), name, source, env.Source{})
			plugintest.TestEnv(t, p, plugintest.Options{})
		})
	}
}

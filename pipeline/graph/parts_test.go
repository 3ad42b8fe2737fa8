package graph

import (
	"testing"

	"github.com/rlhost/rlhost/core/env"
)

func TestLocate_JoinsOnlyRelativePaths(t *testing.T) {
	for _, c := range []struct {
		table    EnvTable
		want     string
		relative bool
	}{
		{EnvTable{Source: env.Source{Use: "cartpole@1"}}, "cartpole@1", false},
		{EnvTable{Source: env.Source{Use: "./env.wasm"}}, "there/env.wasm", true},
		{EnvTable{Source: env.Source{Use: "env.wasm"}}, "there/env.wasm", true},
		{EnvTable{Source: env.Source{Use: "../env.wasm"}}, "env.wasm", true},
		{EnvTable{Source: env.Source{Use: "/env.wasm"}}, "/env.wasm", false},
		{EnvTable{Source: env.Source{Use: "CartPole-v1"}, Plugin: &PluginTable{Name: "gymnasium"}}, "CartPole-v1", false},
	} {
		got, relative := c.table.Locate("there", []string{"cartpole@1"})
		if got != c.want || relative != c.relative {
			t.Errorf("Locate of %q = %q, %v, want %q, %v", c.table.Use, got, relative, c.want, c.relative)
		}
	}
}

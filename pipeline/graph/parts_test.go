package graph

import "testing"

func TestLocate_JoinsOnlyRelativePaths(t *testing.T) {
	for _, c := range []struct {
		table    EnvTable
		want     string
		relative bool
	}{
		{EnvTable{Use: "cartpole@1"}, "cartpole@1", false},
		{EnvTable{Use: "./env.wasm"}, "there/env.wasm", true},
		{EnvTable{Use: "env.wasm"}, "there/env.wasm", true},
		{EnvTable{Use: "../env.wasm"}, "env.wasm", true},
		{EnvTable{Use: "/env.wasm"}, "/env.wasm", false},
		{EnvTable{Use: "CartPole-v1", Plugin: &PluginTable{Name: "gymnasium"}}, "CartPole-v1", false},
	} {
		got, relative := c.table.Locate("there", []string{"cartpole@1"})
		if got != c.want || relative != c.relative {
			t.Errorf("Locate of %q = %q, %v, want %q, %v", c.table.Use, got, relative, c.want, c.relative)
		}
	}
}

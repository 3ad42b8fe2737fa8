package graph_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// Arguments of native environments may be lists, which they get as JSON; arguments of modules are scalars.
func TestParse_ListsAreArgumentsOfNativeEnvironments(t *testing.T) {
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	alone := *parts
	alone.Load = nil // no environment is asked
	of := func(use string) (*graph.Graph, error) {
		return graph.Parse("x.toml", []byte(`rlhost = 1
[run]
name = "x"
[env.e]
use = "`+use+`"
args = { drop = ["a", "b"], gym_wrap = [{ use = "m:W", n = [1, 2.5, true] }], deep = { list = [] } }
[train]
preset = "general"
env = "e"
`), graph.ParseOptions{Parts: &alone})
	}
	g, err := of("gymnasium:X-v0")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"drop": `["a","b"]`, "gym_wrap": `[{"n":[1,2.5,true],"use":"m:W"}]`, "deep.list": "[]"}
	for key, text := range want {
		if got := g.Envs[0].Table.Args[key]; got != text {
			t.Errorf("args.%s is %q, want %q", key, got, text)
		}
	}
	again, err := graph.Parse("x.toml", []byte(g.Resolved()), graph.ParseOptions{Parts: &alone})
	if err != nil {
		t.Fatal(err)
	}
	for key, text := range want {
		if got := again.Envs[0].Table.Args[key]; got != text {
			t.Errorf("in full args.%s is %q, want %q", key, got, text)
		}
	}
	if _, err := of("cartpole@1"); err == nil || !strings.Contains(err.Error(), "`env.e.args.drop` must be a string, a number, true, false or a table of these") {
		t.Errorf("a module is given a list: %v", err)
	}
}

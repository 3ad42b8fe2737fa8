package graph_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// duel is a file with the preset ppo and an environment of two agents, followed by more.
func duel(t *testing.T, more string) *graph.Graph {
	t.Helper()
	text := "rlhost = 1\n[run]\nname = \"duel\"\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"ppo\"\n" + more
	g, problems := graph.Parse("duel.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	return g
}

// A policy that acts with versions of another is that policy in everything but its weights, and the file shows only those.
func TestPolicies_WithOfShareTheOthersTable(t *testing.T) {
	g := duel(t, "[policy.main]\nnet = { chunk = 8 }\n[policy.past]\nof = \"main\"\n[policy.\"main@12\"]\nof = \"main\"\nversion = 12\n"+
		"[policy.stranger]\nenv = \"duel\"\nfrom = \"other/3\"\nversion = 2\n")
	for name, want := range map[string]graph.Role{"main": graph.Learned, "past": graph.Pool, "main@12": graph.Frozen, "stranger": graph.Frozen} {
		if got := g.Policy(name).Role(); got != want {
			t.Errorf("policy %s is %s, want %s", name, got, want)
		}
	}
	if p := g.Policy("main@12"); p.Env != "duel" || p.Of != "main" || p.Version != 12 {
		t.Errorf("main@12: %+v", p)
	}
	var decoded map[string]any
	if err := g.Policy("past").Decode(&decoded); err != nil || decoded["net"] == nil || decoded["env"] != nil {
		t.Errorf("past decodes %v, %v", decoded, err)
	}
	for _, want := range []string{"\n[policy.past]\nof = \"main\"\n\n", "\n[policy.\"main@12\"]\nof = \"main\"\nversion = 12\n\n",
		"\n[policy.stranger]\nenv = \"duel\"\nfrom = \"other/3\"\nversion = 2\nbackend = \"cpu\"\n"} {
		if !strings.Contains(g.Expanded(), want) {
			t.Errorf("expanded form lacks\n%s\nin\n%s", want, g.Expanded())
		}
	}
	again, problems := graph.Parse("x.toml", []byte(g.Expanded()), graph.ParseOptions{Parts: graphtest.Standard()})
	if again == nil || again.Expanded() != g.Expanded() {
		t.Errorf("expanded form means something else: %s", problems)
	}
	other := duel(t, "[policy.main]\nnet = { chunk = 16 }\n[policy.past]\nof = \"main\"\n")
	if g.Policy("past").Equal(other.Policy("past")) {
		t.Error("a pool of another network is the same policy")
	}
}

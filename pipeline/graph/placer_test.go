package graph_test

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

const placed = `rlhost = 1
[run]
name = "x"
stop = { env_steps = 4096 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
env = "cartpole"
[policy.main]
backend = "cpu"
`

// withPlugin has policies computed by a plugin that makes inference and learners; ask is its error when it is asked for them.
func withPlugin(ask error) *graph.Parts {
	parts := graphtest.Standard()
	parts.PolicyPlugin = func(func(into any) error) string { return "gpu" }
	parts.PolicyPlugins = map[string]graph.PluginTable{"gpu": {Path: "rlhost-gpu"}}
	parts.Plugin = func(graph.PluginTable, string) (map[string]graph.Maker, error) {
		kinds := map[string]graph.Maker{}
		for _, kind := range []string{"inference", "learner"} {
			kinds[kind] = func() (component.Component, error) { return parts.Kinds[kind](), nil }
		}
		return kinds, ask
	}
	return parts
}

// where lists where a graph's components run.
func where(g *graph.Graph) map[string]string {
	places := map[string]string{}
	for _, x := range g.Components {
		places[x.Name] = x.Runtime + " " + x.Plugin
	}
	return places
}

func TestPlacer_ComponentsRunWhereTheirPolicyIsComputed(t *testing.T) {
	for set, want := range map[string]map[string]string{
		"run.seed=1":                          {"inference": "process gpu", "learner": "process gpu", "rollout": "builtin ", "batcher": "builtin "},
		"component.inference.runtime=builtin": {"inference": "builtin ", "learner": "process gpu"},
	} {
		parts := withPlugin(nil)
		g, problems := graphtest.Parse("x.toml", []byte(placed), graph.ParseOptions{Parts: parts, Sets: []string{set}})
		if g == nil {
			t.Fatal(problems)
		}
		again, problems := graphtest.Parse("x.toml", []byte(g.Expanded()), graph.ParseOptions{Parts: parts})
		if again == nil {
			t.Fatalf("%v\n%s", problems, g.Expanded())
		}
		for _, of := range []*graph.Graph{g, again} {
			for name, place := range want {
				if got := where(of)[name]; got != place {
					t.Errorf("%s: %s runs in %q, want %q", set, name, got, place)
				}
			}
		}
		if g.Hash() != again.Hash() || strings.Contains(g.Expanded(), "gpu") {
			t.Errorf("the expanded file is another one:\n%s", again.Expanded())
		}
	}
}

func TestPlacer_SaysThatTheProgramIsMissing(t *testing.T) {
	_, problems := graphtest.Parse("x.toml", []byte(placed), graph.ParseOptions{Parts: withPlugin(exec.ErrNotFound)})
	if text := problems.String(); !strings.Contains(text, "x.toml:11:1: error[E039]: the program rlhost-gpu") || !strings.Contains(text, "make build") {
		t.Errorf("%s", text)
	}
}

func TestPlacer_ALearnerDoesNotStay(t *testing.T) {
	for _, runtime := range []string{"builtin", "process"} {
		_, problems := graphtest.Parse("x.toml", []byte(placed), graph.ParseOptions{Parts: withPlugin(nil), Sets: []string{"component.learner.runtime=" + runtime}})
		if text := problems.String(); !strings.Contains(text, `error[E005]: "learner" learns in this program, and policy "main" is learned by the plugin "gpu" alone`) || !strings.Contains(text, "leave out runtime") {
			t.Errorf("%s", text)
		}
	}
}

func TestComputable_PointsAtTheBackend(t *testing.T) {
	parts := withPlugin(nil)
	parts.Computes = func(p graph.PluginTable, _ string) error {
		return &table.Error{Reason: "no device for " + p.Path, Help: "buy one"}
	}
	g, problems := graphtest.Parse("x.toml", []byte(placed), graph.ParseOptions{Parts: parts})
	if g == nil {
		t.Fatal(problems)
	}
	err := g.Computable(parts, graph.CodeDevice).Err()
	if err == nil || !strings.Contains(err.Error(), `x.toml:11:1: error[E039]: policy "main" cannot be computed on this machine: no device for rlhost-gpu`) ||
		!strings.Contains(err.Error(), "buy one") {
		t.Errorf("%v", err)
	}
	if warnings := g.Computable(parts, graph.CodeNoDevice); warnings.Err() != nil || len(warnings) != 1 {
		t.Errorf("%v", warnings)
	}
	parts.Computes = func(graph.PluginTable, string) error { return errors.New("it does not answer") }
	if err := g.Computable(parts, graph.CodeDevice).Err(); err == nil || !strings.Contains(err.Error(), "it does not answer") {
		t.Errorf("%v", err)
	}
}

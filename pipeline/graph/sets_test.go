package graph_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

const listed = `
rlhost = 1
[run]
name = "listed"
[env.pole]
use = "./pole.wasm"
wrap = [{ time_limit = 500 }, { reward_clip = 1.0 }]
[train]
preset = "fast"
env = "pole"
[component.second]
kind = "runner"
[[wire]]
signal = "rollout.episodes"
slot = "second.on_episodes"
mode = "all"
depth = 8
on_full = "drop_oldest"
`

func setIn(t *testing.T, sets ...string) *graph.Graph {
	t.Helper()
	g, problems := graphtest.Parse("pipeline.toml", []byte(listed), graph.ParseOptions{Parts: graphtest.Standard(), Sets: sets})
	if problems.Err() != nil {
		t.Fatalf("%q:\n%s", sets, problems)
	}
	return g
}

// An item of a list is named by its place; the others stay as they are.
func TestSets_NameOneItemOfAList(t *testing.T) {
	g := setIn(t, "env.pole.wrap[0].time_limit=100")
	if text := g.Expanded(); !strings.Contains(text, "wrap = [{ time_limit = 100 }, { reward_clip = 1.0 }]") {
		t.Errorf("a key of the first wrapper:\n%s", text)
	}
	g = setIn(t, "env.pole.wrap[1]={ reward_scale = 0.5 }", "env.pole.wrap[0].time_limit=7")
	if text := g.Expanded(); !strings.Contains(text, "wrap = [{ time_limit = 7 }, { reward_scale = 0.5 }]") {
		t.Errorf("a whole wrapper:\n%s", text)
	}
}

// A wire is named by its slot where its signal has several; without the slot all wires of the signal are set.
func TestSets_NameOneWireByItsSlot(t *testing.T) {
	depths := func(set string) map[string]int {
		g := setIn(t, set)
		m := map[string]int{}
		for i := range g.Wires {
			if w := &g.Wires[i]; w.From == "rollout" && w.Signal == "episodes" {
				m[w.To] = w.Depth
			}
		}
		return m
	}
	if m := depths("wire.rollout.episodes.second.on_episodes.depth=77"); m["second"] != 77 || m["runner"] == 77 {
		t.Errorf("by the slot: %v", m)
	}
	if m := depths("wire.rollout.episodes.depth=77"); m["second"] != 77 || m["runner"] != 77 {
		t.Errorf("by the signal: %v", m)
	}
}

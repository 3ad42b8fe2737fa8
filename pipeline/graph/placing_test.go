package graph_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

const grouped = `rlhost = 1
[run]
name = "x"
stop = { env_steps = 4096 }
[env.cartpole]
use = "cartpole@1"
runtime = "process"
cores = "1,0"
nice = 3
library_threads = 1
[train]
preset = "fast"
[group.actors]
components = ["rollout", "inference"]
count = 3
cores = "0-2"
nice = 5
[component.learner]
runtime = "process"
threads = 2
[component.inference]
cores = "0-2"
`

func parsed(t *testing.T, src string, sets ...string) *graph.Graph {
	t.Helper()
	parts := graphtest.Standard()
	parts.Plugin = func(graph.PluginTable, string) (map[string]graph.Maker, error) {
		kinds := map[string]graph.Maker{}
		for kind, made := range parts.Kinds {
			kinds[kind] = graph.BuiltinMaker(made)
		}
		return kinds, nil
	}
	g, problems := graphtest.Parse("x.toml", []byte(src), graph.ParseOptions{Parts: parts, Sets: sets})
	if g == nil {
		t.Fatal(problems)
	}
	return g
}

// A group counts its members, gives each pair of them a loop, and wires only within pairs.
func TestGroup_CountsPairs(t *testing.T) {
	g := parsed(t, grouped)
	for _, name := range []string{"rollout", "inference"} {
		if x := g.Component(name); x.Count != 3 || x.LoopOf(2) != "rollout[2]" {
			t.Errorf("%s: %d instances, the last on loop %s; want 3 and rollout[2]", name, x.Count, x.LoopOf(2))
		}
	}
	for i := range g.Wires {
		w := &g.Wires[i]
		within := (w.From == "rollout" || w.From == "inference") && (w.To == "rollout" || w.To == "inference")
		if w.Paired != within {
			t.Errorf("%v: paired %v, want %v", w, w.Paired, within)
		}
	}
	if scaled := parsed(t, grouped, "group.actors.count=5"); scaled.Component("inference").Count != 5 {
		t.Error("--set does not scale the group")
	}
}

// What a table says comes first, then its group, then its plugin. A place in rlhost's own process is processors alone.
func TestPlaceOf_AsksTableGroupAndPlugin(t *testing.T) {
	src := strings.Replace(grouped, "[component.learner]\nruntime = \"process\"", `[plugin.own]
path = "./own"
cores = "7"
nice = 9
[group.rest]
components = ["learner", "batcher"]
nice = 4
[component.learner]
plugin = "own"`, 1)
	g := parsed(t, src)
	for name, want := range map[string]place.Place{
		"rollout": {Cores: "0-2"}, "inference": {Cores: "0-2"}, "batcher": {}, "learner": {Cores: "7", Nice: 4, Threads: 2}, "runner": {},
	} {
		if got := g.PlaceOf(g.Component(name)); got != want {
			t.Errorf("%s is at %+v, want %+v", name, got, want)
		}
	}
	if got, want := g.Env("cartpole").Table.PlaceOf(), (place.Place{Cores: "0-1", Nice: 3, Threads: 1}); got != want {
		t.Errorf("the environments are at %+v, want %+v", got, want)
	}
}

// The expanded file means the same, and can be scaled and placed by overrides as well.
func TestGroup_ExpandedFileIsTheSameGraph(t *testing.T) {
	g := parsed(t, grouped)
	again := parsed(t, g.Expanded())
	if again.Expanded() != g.Expanded() {
		t.Errorf("it is\n%s\nagain\n%s", g.Expanded(), again.Expanded())
	}
	if parsed(t, g.Expanded(), "group.actors.count=2").Component("rollout").Count != 2 {
		t.Error("the expanded file cannot be scaled")
	}
	moved := parsed(t, g.Expanded(), `group.actors.cores="0"`, `component.inference.cores="0"`, "component.learner.threads=1")
	if changes := g.TableChanges(moved); len(changes) != 2 || changes[0].What != "place" || changes[0].Text != `cores "0-2" → "0"` {
		t.Errorf("changes are %+v", changes)
	}
	if why := g.Reasons(moved, "learner"); len(why) != 1 || why[0] != "threads 2 → 1" {
		t.Errorf("the learner is replaced for %q", why)
	}
	if why := g.Reasons(moved, "rollout"); len(why) != 0 {
		t.Errorf("the rollout is replaced for %q", why)
	}
}

// In a synchronous run each batcher of a group gets the blocks of its own rollout.
func TestGroup_PairedGatherersCountTheirOwnBlocks(t *testing.T) {
	src := strings.Replace(grouped, `"rollout", "inference"`, `"rollout", "inference", "batcher"`, 1)
	for mode, sets := range map[string][]string{"sync": {"train.mode=sync"}, "async": {"component.batcher.dataset_rows=4096"}} {
		g := parsed(t, src, sets...)
		x := g.Component("rollout")
		want := x.Flow.Splits * x.Flow.BlockRows
		if mode == "async" {
			want = x.Flow.Blocks * x.Flow.BlockRows
		}
		if got := g.Component("batcher").Flow.DatasetRows; got != want || g.Component("batcher").Count != 3 {
			t.Errorf("%s: %d rows a dataset, want %d", mode, got, want)
		}
	}
}

// A place that this machine does not have is an error where something runs, and a warning where a file is read.
func TestPlaced_NamesWhatIsMissing(t *testing.T) {
	g := parsed(t, grouped, `group.actors.cores="0,1023"`, `component.inference.cores="1023,0"`, `env.cartpole.cores="1022"`)
	err := g.Placed(graph.CodePlace).Err()
	if err == nil {
		t.Fatal("nothing is said")
	}
	for _, want := range []string{`error[E129]: component "rollout" has cores 0,1023, and this program may not use`, `env "cartpole" has cores 1022`, "this program may use"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it says\n%v\nwithout %q", err, want)
		}
	}
	if warnings := g.Placed(graph.CodeNoPlace); warnings.Err() != nil || len(warnings) != 3 {
		t.Errorf("where the file is only read:\n%v", warnings)
	}
	if here := parsed(t, strings.ReplaceAll(grouped, "0-2", "0"), `env.cartpole.cores="0"`).Placed(graph.CodePlace); len(here) > 0 && strings.Contains(here.String(), "nice") {
		t.Errorf("a priority that every program may give: %v", here)
	}
}

// The rule of hosts is written out as it was read, and is its group's where the component has none.
func TestHostRule_IsWrittenAsItIsRead(t *testing.T) {
	for _, rule := range []string{`"pack"`, `"spread"`, `{ host = "b" }`, `{ label = "gpu=h100", per_host = 2 }`} {
		g := parsed(t, grouped, "group.actors.place="+rule, `component.batcher.place=`+rule)
		again := parsed(t, g.Expanded())
		for _, name := range []string{"rollout", "batcher"} {
			x := g.Component(name)
			if got := g.HostRuleOf(x); got.String() != rule || again.HostRuleOf(again.Component(name)) != got {
				t.Errorf("%s: place = %s is read as %v, then as %v", name, rule, got, again.HostRuleOf(again.Component(name)))
			}
		}
		if rule := g.HostRuleOf(g.Component("learner")); rule != (graph.HostRule{}) {
			t.Errorf("the learner has the rule %v", rule)
		}
	}
	g := parsed(t, grouped, "group.actors.place=spread")
	if changes := g.TableChanges(parsed(t, grouped)); len(changes) != 2 || changes[0] != (graph.TableChange{What: "place", Name: changes[0].Name, Text: `place "spread" removed`}) {
		t.Errorf("changes %+v", changes)
	}
}

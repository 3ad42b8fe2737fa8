package graph_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

func parseFile(t *testing.T, file string, sets ...string) *graph.Graph {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	g, problems := graphtest.Parse(file, src, graph.ParseOptions{Parts: graphtest.Standard(), Sets: sets})
	if problems.Err() != nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	return g
}

func TestExpanded_MeansTheSame(t *testing.T) {
	files, err := filepath.Glob("../../examples/pipelines/*.toml")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	for _, file := range append(files, "../../pipeline.toml") {
		rows := "2048" // a block of each split
		if strings.Contains(file, "two-envs") {
			rows = "4096"
		}
		for _, sets := range [][]string{nil, {"train.mode=sync", "component.batcher.dataset_rows=" + rows, "component.rollout.count=1",
			"component.rollout.envs=32", "component.rollout.horizon=64"},
			{"env.cartpole.args={ max_steps = 200, deep.er = \"x\\\"y\" }", "env.cartpole.limits={ memory = \"3MiB\", step = \"1500us\" }",
				"env.cartpole.grants=[\"clock\"]", "run.stop={ wall_time = \"1h30m\" }", "component.runner.loop=eye"},
			{"env.cartpole.runtime=process", "env.cartpole.workers=2", "component.learner.runtime=process"},
			{"plugin.zoo={ path = \"./zoo\", interpreter = [\"sh\"], max_restarts = 0, stall = \"0s\", memory = \"1MiB\" }",
				"component.cat={ plugin = \"zoo\", kind = \"lion\", scale = 2.0 }",
				"env.hill={ use = \"zoo:hill\", workers = 2 }", "env.gym={ use = \"gymnasium:Acrobot-v1\" }"}} {
			name := parseFile(t, file).Envs[0].Name
			for i := range sets {
				sets[i] = strings.Replace(sets[i], "env.cartpole.", "env."+name+".", 1)
			}
			g := parseFile(t, file, sets...)
			text := g.Expanded()
			again, problems := graphtest.Parse("expanded.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
			if problems.Err() != nil {
				t.Fatalf("%s %v: expanded form:\n%s\n%s", file, sets, problems, text)
			}
			if again.Hash() != g.Hash() || again.Expanded() != text {
				t.Errorf("%s %v: expanded form means something else:\n%s\n%s", file, sets, text, again.Expanded())
			}
		}
	}
}

func TestExpanded_OfTheShortFormIsTheExample(t *testing.T) {
	short, long := parseFile(t, "../../pipeline.toml"), parseFile(t, "../../examples/pipelines/cartpole.toml")
	if got, want := long.Expanded(), short.Expanded(); got != want {
		t.Errorf("examples/pipelines/cartpole.toml means\n%s\nthe short form means\n%s", got, want)
	}
}

func TestHash_DependsOnTheMeaning(t *testing.T) {
	base := parseFile(t, "../../pipeline.toml").Hash()
	if other := parseFile(t, "../../pipeline.toml", "component.learner.epochs=3").Hash(); other == base {
		t.Error("other epochs, same hash")
	}
	if same := parseFile(t, "../../pipeline.toml", "component.learner.epochs=2").Hash(); same != base {
		t.Error("a key set to the value that it has changes the hash")
	}
}

func TestPreset_IsMergedKeyByKey(t *testing.T) {
	text := `rlhost = 1
[run]
name = "x"
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[policy.main]
net = { hidden = [32] }
[component.runner]
kind = "batcher"
[component.extra]
kind = "rollout"
env = "cartpole"
[[wire]]
signal = "learner.weights"
slot = "batcher.on_weights"
mode = "all"
depth = 7
on_full = "drop_oldest"
[[wire]]
signal = ["extra.trajectories", "rollout.trajectories"]
slot = "runner.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
[[wire]]
signal = "extra.obs_ready"
slot = "inference.act"
mode = "queue"
depth = 64
on_full = "block"
[[wire]]
signal = "inference.actions"
slot = "extra.on_actions"
mode = "reply"
depth = 64
on_full = "block"
`
	// A runner of another kind has none of the preset's keys and slots, so its wires do not fit any more.
	_, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	for _, want := range []string{`batcher "runner" has no slot "on_episodes"`, `batcher "runner" has no slot "on_stats"`} {
		if !strings.Contains(problems.String(), want) {
			t.Errorf("problems lack %q:\n%s", want, problems)
		}
	}
	if n := len(problems); n != 2 {
		t.Errorf("%d problems, want 2:\n%s", n, problems)
	}

	text = strings.Replace(text, "[component.runner]\nkind = \"batcher\"\n", "", 1)
	text = strings.Replace(text, "runner.on_trajectories", "batcher.on_trajectories", 1)
	text = strings.Replace(text, ", \"rollout.trajectories\"", "", 1)
	g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	for _, want := range []string{
		`net = { kind = "mlp", hidden = [32], activation = "tanh" }`, // the list is replaced, the other keys stay
		"signal = \"learner.weights\"\nslot = \"inference.on_weights\"\nmode = \"latest\"",
		"signal = \"learner.weights\"\nslot = \"batcher.on_weights\"\nmode = \"all\"\ndepth = 7\non_full = \"drop_oldest\"",
	} {
		if !strings.Contains(g.Expanded(), want) {
			t.Errorf("expanded form lacks\n%s\nin\n%s", want, g.Expanded())
		}
	}
	if n := len(g.Wires); n != 11 {
		t.Errorf("%d wires, want the preset's 8 and 3", n)
	}
}

func TestSet_ReadsBareWordsAsStrings(t *testing.T) {
	g := parseFile(t, "../../pipeline.toml", "run.name=other", "run.dir=./my-runs/x", "run.stop.wall_time=10m",
		"component.runner.log=[\"jsonl\"]", "component.learner.gamma=1", "wire.learner.stats.on_full=drop_oldest", "run.seed=0x10")
	text := g.Expanded()
	for _, want := range []string{`name = "other"`, `dir = "./my-runs/x"`, `wall_time = "10m"`, `log = ["jsonl"]`, "gamma = 1.0",
		"signal = \"learner.stats\"\nslot = \"runner.on_stats\"\nmode = \"all\"\ndepth = 256\non_full = \"drop_oldest\"", "seed = 16"} {
		if !strings.Contains(text, want) {
			t.Errorf("expanded form lacks %q:\n%s", want, text)
		}
	}
}

func TestLoops_FollowReplies(t *testing.T) {
	src, err := os.ReadFile("../../examples/pipelines/cartpole.toml")
	if err != nil {
		t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(src)) {
		if !strings.HasPrefix(line, "loop = ") {
			kept = append(kept, line)
		}
	}
	g, problems := graphtest.Parse("x.toml", []byte(strings.Join(kept, "")), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatal(problems)
	}
	want := map[string]string{"rollout": "rollout", "inference": "rollout", "batcher": "batcher", "learner": "learner", "runner": "runner"}
	for name, loop := range want {
		if got := g.Component(name).Loop; got != loop {
			t.Errorf("%s is on loop %q, want %q", name, got, loop)
		}
	}
}

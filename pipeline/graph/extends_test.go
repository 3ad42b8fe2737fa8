package graph_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// folder has files by their paths, and variables of the environment by their names behind a dollar.
type folder map[string]string

func (f folder) read(path string) ([]byte, error) {
	text, ok := f[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), nil
}

func (f folder) getenv(name string) (string, bool) {
	value, ok := f["$"+name]
	return value, ok
}

// parse parses the file train/x.toml.
func (f folder) parse(sets ...string) (*graph.Graph, graph.Problems) {
	return graphtest.Parse("train/x.toml", []byte(f["train/x.toml"]),
		graph.ParseOptions{Parts: graphtest.Standard(), Sets: sets, Read: f.read, Getenv: f.getenv})
}

func (f folder) mustParse(t *testing.T, sets ...string) *graph.Graph {
	t.Helper()
	g, problems := f.parse(sets...)
	if g == nil {
		t.Fatal(problems)
	}
	return g
}

// wantLines checks that a graph has lines in its expanded form.
func wantLines(t *testing.T, g *graph.Graph, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(g.Expanded(), "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, g.Expanded())
		}
	}
}

func TestExtends_TablesMergeListsReplaceAndWiresAddUp(t *testing.T) {
	f := folder{
		"train/x.toml": "rlhost = 1\nextends = \"../base/base.toml\"\n[run]\nseed = 7\n[env.e]\nargs = { b = 3 }\n" +
			"[component.runner]\nlog = [\"jsonl\"]\n[component.more]\nkind = \"runner\"\n" +
			"[[wire]]\nsignal = \"rollout.episodes\"\nslot = \"more.on_episodes\"\n" +
			"[[wire]]\nsignal = \"rollout.episodes\"\nslot = \"runner.on_episodes\"\ndepth = 9\n",
		"base/base.toml": "rlhost = 1\nextends = \"deeper/root.toml\"\n[run]\nname = \"x\"\nseed = 3\n[train]\npreset = \"fast\"\n" +
			"[component.runner]\nlog = [\"console\", \"jsonl\"]\n[[wire]]\nsignal = \"rollout.episodes\"\nslot = \"runner.on_episodes\"\ndepth = 8\n",
		"base/deeper/root.toml": "rlhost = 1\n[env.e]\nuse = \"./e.wasm\"\nargs = { a = 1, b = 2 }\nwrap = [{ use = \"../w.wasm\" }]\n" +
			"[plugin.p]\npath = \"bin/p\"\n[plugin.q]\npath = \"q\"\n[run]\nseed = 1\n",
	}
	g := f.mustParse(t)
	wantLines(t, g, `seed = 7`, `name = "x"`, `args = { a = "1", b = "3" }`, `log = ["jsonl"]`,
		`use = "../base/deeper/e.wasm"`, `wrap = [{ use = "../base/w.wasm" }]`, `path = "../base/deeper/bin/p"`, `path = "q"`)
	depths := map[string]int{}
	for _, w := range g.Wires {
		depths[w.String()] = w.Depth
	}
	if depths["rollout.episodes → runner.on_episodes"] != 9 || depths["rollout.episodes → more.on_episodes"] != 4096 {
		t.Errorf("wires: %v", depths)
	}
	if got, want := g.Resolved(), "# Made of train/x.toml, base/base.toml, base/deeper/root.toml\nrlhost = 1\n"; !strings.HasPrefix(got, want) {
		t.Errorf("the resolved file begins with %q, want %q", got[:100], want)
	}
	again, err := g.With([]string{"run.seed=8"}, graphtest.Standard())
	if err != nil || !strings.HasPrefix(again.Resolved(), "# Made of train/x.toml, base") {
		t.Errorf("a changed graph has lost what it was made of: %v", err)
	}
}

func TestExtends_AtMostEightFiles(t *testing.T) {
	for n, ok := range map[int]bool{8: true, 9: false} {
		f := folder{"train/x.toml": "rlhost = 1\nextends = \"1.toml\"\n"}
		for i := 1; i < n; i++ {
			f[fmt.Sprintf("train/%d.toml", i)] = fmt.Sprintf("rlhost = 1\nextends = \"%d.toml\"\n", i+1)
		}
		f[fmt.Sprintf("train/%d.toml", n)] = "rlhost = 1\n[run]\nname = \"x\"\n[env.c]\nuse = \"cartpole@1\"\n[train]\npreset = \"fast\"\n"
		g, problems := f.parse()
		if (g != nil) != ok || !ok && !strings.Contains(problems.String(), "at most 8 derive from each other") {
			t.Errorf("%d files: %v", n, problems)
		}
	}
}

func TestExtends_TheFolderOfRunsMayStandInTheFileThatIsExtended(t *testing.T) {
	base := t.TempDir() + "/base.toml"
	if err := os.WriteFile(base, []byte("rlhost = 1\n[run]\ndir = \"elsewhere\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, problems := graph.RunDir("x.toml", []byte("rlhost = 1\nextends = \""+base+"\"\n[run]\nname = \"x\"\n"))
	if dir != "elsewhere" {
		t.Errorf("run.dir is %q: %v", dir, problems)
	}
}

func TestPresets_OfTheirOwnFile(t *testing.T) {
	f := folder{
		"train/x.toml": "rlhost = 1\n[run]\nname = \"x\"\n[env.c]\nuse = \"cartpole@1\"\n[train]\npreset = \"../presets/mine.toml\"\n",
		"presets/mine.toml": "[preset]\nabout = \"mine\"\nfrom = \"./base.toml\"\n[component.learner]\nepochs = 3\n" +
			"[component.shaper]\nruntime = \"wasm\"\nuse = \"./shaper.wasm\"\n",
		"presets/base.toml": "[preset]\nfrom = \"fast\"\nmode = \"sync\"\n[component.learner]\nepochs = 5\nminibatch = 32\n",
	}
	g, problems := f.parse()
	if g != nil || !strings.Contains(problems.String(), "../presets/shaper.wasm") && !strings.Contains(problems.String(), "no such file") {
		t.Fatalf("the module of a preset was looked for elsewhere: %v", problems)
	}
	f["presets/mine.toml"] = strings.Split(f["presets/mine.toml"], "[component.shaper]")[0]
	g = f.mustParse(t, "component.learner.minibatch=16")
	wantLines(t, g, "epochs = 3", "minibatch = 16", `mode = "sync"`, "horizon = 64")
	if want := "# Presets: presets/mine.toml, presets/base.toml\n"; !strings.HasPrefix(g.Resolved(), want) {
		t.Errorf("the resolved file begins with %q, want %q", g.Resolved()[:80], want)
	}
	named := f.mustParse(t, "train.preset=fast")
	if named.Hash() == g.Hash() {
		t.Error("the preset of the file changes nothing")
	}
}

func TestVariables_AreTextAndNothingElse(t *testing.T) {
	f := folder{
		"train/x.toml": "rlhost = 1\n[run]\nname = \"${NAME}\"\ndir = \"${DIR:-runs}\"\n[env.e]\nuse = \"./e.wasm\"\n" +
			"args = { a = '${HOSTILE}', b = \"$$${NAME}$\", c = \"$${NAME}\", d = \"${EMPTY:-default}\", e = \"x${EMPTY}y\" }\n[train]\npreset = \"fast\"\n",
		"$NAME": "named", "$HOSTILE": "\"\n[component.evil]\nkind = \"runner\"\n${NAME}", "$EMPTY": "", "$DIR": "out",
	}
	g, problems := f.parse()
	if g == nil {
		t.Fatal(problems)
	}
	got := g.Envs[0].Table.Args
	want := map[string]string{"a": f["$HOSTILE"], "b": "$named$", "c": "${NAME}", "d": "default", "e": "xy"}
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("args.%s = %q, want %q", key, got[key], want[key])
		}
	}
	if g.Component("evil") != nil || g.Run.Name != "named" || g.Run.Dir != "out" {
		t.Errorf("run %+v", g.Run)
	}
	if want := "# Variables of the environment: DIR, EMPTY, HOSTILE, NAME\n"; !strings.HasPrefix(g.Resolved(), want) {
		t.Errorf("the resolved file begins with %q, want %q", g.Resolved()[:80], want)
	}
	// What the resolved file says stays, whatever becomes of the variables.
	again, problems := graphtest.Parse("again.toml", []byte(g.Resolved()), graph.ParseOptions{Parts: graphtest.Standard(), Getenv: folder{}.getenv})
	if again == nil || again.Hash() != g.Hash() {
		t.Errorf("the resolved file means something else: %v\n%s", problems, g.Resolved())
	}
}

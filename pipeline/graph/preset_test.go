package graph_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// expandedWith returns the expanded form of a small file with a preset, without [run].
func expandedWith(t *testing.T, preset, stop string, running *graph.Graph) (*graph.Graph, string) {
	t.Helper()
	text := "rlhost = 1\n[run]\nname = \"x\"\nstop = { " + stop + " }\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"" + preset + "\"\n"
	g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard(), Running: running})
	if g == nil {
		t.Fatalf("preset %s:\n%s", preset, problems)
	}
	_, after, _ := strings.Cut(g.Expanded(), "\n[train]\n")
	return g, after
}

// differences lists the lines of two expanded forms that are not the same.
func differences(t *testing.T, a, b string) []string {
	t.Helper()
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	if len(left) != len(right) {
		t.Fatalf("%d lines and %d:\n%s\n%s", len(left), len(right), a, b)
	}
	var list []string
	for i := range left {
		if left[i] != right[i] {
			list = append(list, left[i]+" → "+right[i])
		}
	}
	return list
}

func TestPresets_DescribeThemselves(t *testing.T) {
	about := graphtest.Standard().AboutPresets()
	for _, name := range []string{"appo", "continuous", "fast", "general", "ppo"} {
		if !regexp.MustCompile(`^[a-z][^.\n]{20,140}$`).MatchString(about[name]) {
			t.Errorf("preset %s is for %q, want one sentence", name, about[name])
		}
	}
	if len(about) != 5 {
		t.Errorf("presets: %v", about)
	}
}

func TestPresets_DeriveFromEachOther(t *testing.T) {
	_, fast := expandedWith(t, "fast", "env_steps = 500_000", nil)
	_, appo := expandedWith(t, "appo", "env_steps = 500_000", nil)
	if d := differences(t, fast, appo); len(d) != 1 || d[0] != "vtrace = false → vtrace = true" {
		t.Errorf("appo differs from fast in %q", d)
	}
	_, ppo := expandedWith(t, "ppo", "env_steps = 500_000", nil)
	_, general := expandedWith(t, "general", "env_steps = 500_000", nil)
	if d := differences(t, ppo, general); len(d) == 0 || !strings.Contains(strings.Join(d, "\n"), "normalize_obs = false → normalize_obs = true") {
		t.Errorf("general differs from ppo in %q", d)
	}
	_, continuous := expandedWith(t, "continuous", "env_steps = 500_000", nil)
	if d := differences(t, general, continuous); !slices.Contains(d, "epochs = 4 → epochs = 10") {
		t.Errorf("continuous differs from general in %q", d)
	}
	for name, want := range map[string]string{ppo: "sync", general: "sync", continuous: "sync", fast: "async", appo: "async"} {
		if !strings.HasPrefix(name, "mode = \""+want+"\"\n") {
			t.Errorf("want mode %s of\n%s", want, name)
		}
	}
}

func TestPresets_PPOHasCleanRLsSettings(t *testing.T) {
	_, text := expandedWith(t, "ppo", "env_steps = 500_000", nil)
	for _, want := range []string{"envs = 4", "horizon = 128", "dataset_rows = 512", "minibatch = 128", "epochs = 4", "learning_rate = 0.00025",
		"lr_anneal_env_steps = 500000", "gamma = 0.99", "gae_lambda = 0.95", "clip = 0.2", "value_clip = 0.2", "entropy_coef = 0.01", "value_coef = 0.5",
		"max_grad_norm = 0.5", "normalize_advantage = true", "share_trunk = false", "normalize_obs = false",
		`net = { kind = "mlp", hidden = [64, 64], activation = "tanh" }`} {
		if !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("ppo lacks %q:\n%s", want, text)
		}
	}
}

// A schedule is part of a run: the preset takes it from the stop rule once, and a file that changes the run has no say in it.
func TestS9PresetsTakeTheScheduleFromTheStopRuleOnce(t *testing.T) {
	for name := range graph.DefaultPresets() {
		first, text := expandedWith(t, name, "env_steps = 3_000", nil)
		if !strings.Contains(text, "lr_anneal_env_steps = 3000\n") {
			t.Errorf("%s does not anneal over the env steps of the run:\n%s", name, text)
		}
		if _, text = expandedWith(t, name, "return = 475", nil); !strings.Contains(text, "lr_anneal_env_steps = 0\n") {
			t.Errorf("%s anneals over a run that has no end in env steps:\n%s", name, text)
		}
		if _, text = expandedWith(t, name, "env_steps = 9_000", first); !strings.Contains(text, "lr_anneal_env_steps = 3000\n") {
			t.Errorf("%s has another schedule after a reload:\n%s", name, text)
		}
	}
	g := parseFile(t, "../../pipeline.toml", "run.stop.env_steps=7_000")
	if !strings.Contains(g.Expanded(), "lr_anneal_env_steps = 7000\n") {
		t.Error("--set run.stop.env_steps does not reach the preset")
	}
}

// The mode of a preset is a default like its other keys.
func TestPresets_TheFilesModeWins(t *testing.T) {
	if g := parseFile(t, "../../pipeline.toml"); g.Synchronous {
		t.Error("fast is synchronous")
	}
	if g := parseFile(t, "../../pipeline.toml", "train.preset=ppo"); !g.Synchronous {
		t.Error("ppo is asynchronous")
	}
	if g := parseFile(t, "../../pipeline.toml", "train.preset=ppo", "train.mode=async"); g.Synchronous {
		t.Error("mode = \"async\" does not count")
	}
}

func TestPresets_ThatCannotBeRead(t *testing.T) {
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"a\"\n"
	for preset, want := range map[string]string{
		"[preset]\nfrom = \"b\"\n": `preset "b" derives from "a", which is none of the others`,
		"[preset]\nfrom = \"c\"\n": `preset "a" derives from "c", which is none of the others`,
		"[preset]\nform = \"b\"\n": "unknown key `form` in [preset]",
		"[preset]\nfrom = 1\n":     "`preset.from` must be a string",
	} {
		parts := graphtest.Standard()
		parts.Presets = map[string]string{"a": preset, "b": "[preset]\nfrom = \"a\"\n"}
		if _, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts}); !strings.Contains(problems.String(), want) {
			t.Errorf("preset %q: %s\nwant %s", preset, problems, want)
		}
	}
}

func TestPresets_GeneralSuitsTheActionsOfItsEnvironment(t *testing.T) {
	parse := func(env, preset, more string, sets ...string) *graph.Graph {
		t.Helper()
		text := "rlhost = 1\n[run]\nname = \"x\"\n[env.e]\nuse = \"" + env + "\"\n[train]\npreset = \"" + preset + "\"\n" + more
		o := graph.ParseOptions{Parts: graphtest.Loading(), Sets: sets, Read: folder{"mine.toml": "[preset]\nfrom = \"general\"\n[component.learner]\nepochs = 7\n"}.read}
		g, problems := graphtest.Parse("x.toml", []byte(text), o)
		if g == nil {
			t.Fatal(problems)
		}
		return g
	}
	if general, continuous := parse("./arm.wasm", "general", ""), parse("./arm.wasm", "continuous", ""); general.Hash() != continuous.Hash() {
		t.Errorf("with actions in a Box general is\n%s\nand continuous\n%s", general.Expanded(), continuous.Expanded())
	}
	for _, env := range []string{"cartpole@1", "./free.wasm", "./missing.wasm"} {
		if g := parse(env, "general", ""); !strings.Contains(g.Expanded(), "\nepochs = 4\n") {
			t.Errorf("general of %s has the settings for a Box with bounds:\n%s", env, g.Expanded())
		}
	}
	for _, env := range []string{"cartpole@1", "./arm.wasm"} {
		wantLines(t, parse(env, "fast", ""), "epochs = 2")
		wantLines(t, parse(env, "continuous", ""), "epochs = 10")
	}
	wantLines(t, parse("cartpole@1", "general", "", "env.e.use=./arm.wasm"), "epochs = 10", "envs = 16")
	wantLines(t, parse("./arm.wasm", "general", "[component.learner]\nepochs = 3\n"), "epochs = 3", "envs = 16")
	wantLines(t, parse("./arm.wasm", "./mine.toml", ""), "epochs = 7", "envs = 16")
	wantLines(t, parse("cartpole@1", "./mine.toml", ""), "epochs = 7", "envs = 32")
}

// Groups of agents with spaces of their own have a policy each, unless the file says who acts.
func TestPresets_GroupsOfAgentsHaveAPolicyEach(t *testing.T) {
	parse := func(use, more string, sets ...string) *graph.Graph {
		t.Helper()
		text := "rlhost = 1\n[run]\nname = \"x\"\n[env.e]\nuse = \"" + use + "\"\n[train]\npreset = \"general\"\n" + more
		g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Loading(), Sets: sets})
		if g == nil {
			t.Fatal(problems)
		}
		return g
	}
	const said = "[policy.prey]\n[component.rollout]\npolicies = { hunters = \"main\", prey = \"prey\" }\n"
	if by, wanted := parse("./tag.wasm", ""), parse("./tag.wasm", said); by.Hash() != wanted.Hash() {
		t.Errorf("a file that says nothing is\n%s\nwant\n%s", by.Expanded(), wanted.Expanded())
	}
	wantLines(t, parse("./tag.wasm", "[policy.prey]\nnet = { hidden = [8] }\n[component.learner_prey]\nepochs = 9\n"), "net = { kind = \"mlp\", hidden = [8], activation = \"tanh\" }", "epochs = 9")
	for _, c := range []struct{ use, more string }{
		{"./duel.wasm", ""}, // one group
		{"./tag.wasm", "[policy.rules]\nscripted = true\n[component.rollout]\npolicies = { \"*/*\" = \"main\" }\n"},
	} {
		if g := parse(c.use, c.more); g.Policy("prey") != nil || g.Policy("player") != nil {
			t.Errorf("%s has policies of groups:\n%s", c.use, g.Expanded())
		}
	}
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.e]\nuse = \"./tag.wasm\"\n[train]\npreset = \"ppo\"\n"
	if g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Loading()}); g == nil || g.Policy("prey") != nil {
		t.Errorf("a preset that does not look at its environment: %v", problems)
	}
}

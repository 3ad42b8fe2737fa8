package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// duel is a file with the preset ppo and an environment of two agents, followed by more.
func duel(t *testing.T, more string) *graph.Graph {
	t.Helper()
	text := "rlhost = 1\n[run]\nname = \"duel\"\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"ppo\"\n" + more
	g, problems := graphtest.Parse("duel.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	return g
}

// A policy that acts with versions of another shares everything but its weights, and the file shows only the weights.
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
	again, problems := graphtest.Parse("x.toml", []byte(g.Expanded()), graph.ParseOptions{Parts: graphtest.Standard()})
	if again == nil || again.Expanded() != g.Expanded() {
		t.Errorf("expanded form means something else: %s", problems)
	}
	other := duel(t, "[policy.main]\nnet = { chunk = 16 }\n[policy.past]\nof = \"main\"\n")
	if g.Policy("past").Equal(other.Policy("past")) {
		t.Error("a pool of another network is the same policy")
	}
}

// Components of further policies are like the preset's own, and the rollout's messages go to all.
func TestPresets_ServeSeveralPolicies(t *testing.T) {
	const file = "testdata/expanded/policies.txtar"
	a := graphtest.ReadArchive(t, file)
	g, problems := graphtest.Parse("pipeline.toml", []byte(a.At("pipeline.toml").Data), graph.ParseOptions{Parts: graphtest.Standard()})
	if g == nil {
		t.Fatalf("Parse:\n%s", problems)
	}
	a.Golden(t, file, "want", problems.String()+g.Expanded())
	again, problems := graphtest.Parse("x.toml", []byte(g.Expanded()), graph.ParseOptions{Parts: graphtest.Standard()})
	if again == nil || again.Hash() != g.Hash() {
		t.Errorf("the expanded form means something else:\n%s", problems)
	}
}

func TestPresets_AllTakeSeveralPolicies(t *testing.T) {
	for preset := range graph.DefaultPresets() {
		text := "rlhost = 1\n[run]\nname = \"duel\"\nstop = { env_steps = 3_000 }\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"" + preset + "\"\n[policy.rival]\n" +
			"[component.rollout]\npolicies = { \"player/0\" = \"main\", \"player/1\" = \"rival\" }\nopponents = { \"main@2\" = 0.5 }\n"
		g, problems := graphtest.Parse("duel.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
		if len(problems) > 0 {
			t.Errorf("preset %s: %s", preset, problems)
		}
		if g == nil {
			continue
		}
		var names, wires []string
		for i := range g.Components {
			names = append(names, g.Components[i].Name)
		}
		for i := range g.Wires {
			wires = append(wires, g.Wires[i].String())
		}
		const want = "rollout inference inference_rival inference_main_2 batcher batcher_rival learner learner_rival frozen_main_2 runner"
		if got := strings.Join(names, " "); got != want {
			t.Errorf("preset %s has components %s, want %s", preset, got, want)
		}
		if len(wires) != 8+7+3 {
			t.Errorf("preset %s has %d wires:\n%s", preset, len(wires), strings.Join(wires, "\n"))
		}
		own, other := g.Component("learner"), g.Component("learner_rival")
		if why := g.Reasons(g, "learner"); len(why) > 0 || own.Policy != "main" || other.Policy != "rival" {
			t.Errorf("learners of %s and %s, %v", own.Policy, other.Policy, why)
		}
		if n := strings.Count(g.Expanded(), "lr_anneal_env_steps = 3000\n"); n != 2 {
			t.Errorf("preset %s: %d learners anneal over the env steps of the run, want 2", preset, n)
		}
		if !g.Synchronous && (other.Loop != "learner_rival" || g.Component("batcher_rival").Loop != "learner_rival" || g.Component("inference_rival").Loop != "rollout") {
			t.Errorf("preset %s: learner_rival is on loop %s, batcher_rival on %s, inference_rival on %s", preset, other.Loop, g.Component("batcher_rival").Loop, g.Component("inference_rival").Loop)
		}
		if got, want := g.Policy("rival").Equal(g.Policy("main")), true; got != want {
			t.Errorf("preset %s: [policy.rival] without a key differs from the preset's own", preset)
		}
	}
}

// Where one policy acts nothing is made for others, whether or not the file names it.
func TestPresets_MakeNothingForTheirOwnPolicy(t *testing.T) {
	plain, named := duel(t, ""), duel(t, "[component.rollout]\npolicies = { player = \"main\" }\n")
	if len(named.Components) != len(plain.Components) || len(named.Wires) != len(plain.Wires) {
		t.Errorf("components and wires for one policy that is named:\n%s", named.Expanded())
	}
	pool := duel(t, "[policy.past]\nof = \"main\"\n[component.rollout]\nopponents = { past = 0.5 }\n")
	if !strings.Contains(pool.Expanded(), "policies = { \"*/*\" = \"main\" }\n") {
		t.Errorf("who plays against the opponents:\n%s", pool.Expanded())
	}
}

func TestPresets_NamesOfTwoPoliciesCollide(t *testing.T) {
	text := "rlhost = 1\n[run]\nname = \"duel\"\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"ppo\"\n[policy.main_2]\n" +
		"[component.rollout]\npolicies = { \"player/0\" = \"main\", \"player/1\" = \"main_2\" }\nopponents = { \"main@2\" = 0.5 }\n"
	_, problems := graphtest.Parse("duel.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	if !strings.Contains(problems.String(), `policies "main_2" and "main@2" both have a component "inference_main_2"`) {
		t.Errorf("problems:\n%s", problems)
	}
}

func TestPolicies_NoMoreActThanBlocksName(t *testing.T) {
	var opponents []string
	for i := range trajectory.MaxPolicies {
		opponents = append(opponents, fmt.Sprintf("\"main@%d\" = 0.001", i+1))
	}
	text := "rlhost = 1\n[run]\nname = \"duel\"\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"ppo\"\n" +
		"[component.rollout]\npolicies = { player = \"main\" }\nopponents = { " + strings.Join(opponents, ", ") + " }\n"
	_, problems := graphtest.Parse("duel.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	if want := fmt.Sprintf("%d policies act in \"rollout\"", trajectory.MaxPolicies+1); len(problems) != 1 || !strings.Contains(problems.String(), want) {
		t.Errorf("want one problem, %s:\n%s", want, problems)
	}
}

// A policy that is learned may be an opponent alone, and a pool of it may precede it in the file.
func TestPresets_APoolOfAnOpponentThatIsLearned(t *testing.T) {
	g := duel(t, "[policy.rival]\n[policy.past]\nof = \"rival\"\n[component.rollout]\nopponents = { past = 0.2, rival = 0.2 }\n")
	text := g.Expanded()
	for _, want := range []string{"signal = \"learner_rival.weights\"\nslot = \"opponents_past.on_weights\"\n", "[component.batcher_rival]\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("expanded form lacks\n%s\nin\n%s", want, text)
		}
	}
}

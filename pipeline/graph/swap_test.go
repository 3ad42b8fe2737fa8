package graph_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

func TestSwap_HasDefaultsAndRules(t *testing.T) {
	g := parseFile(t, "../../pipeline.toml")
	if want := (graph.Swap{At: component.AtTrajectory, TrialEnvs: 4, TrialSteps: 2000, Slower: 4, Probation: time.Minute}); g.Swap != want {
		t.Errorf("defaults %+v, want %+v", g.Swap, want)
	}
	for _, c := range g.Components {
		if c.Swap != graph.SwapAlways {
			t.Errorf("%s: swap = %q", c.Name, c.Swap)
		}
	}
	g = parseFile(t, "../../pipeline.toml", "swap.at=now", "swap.trial_envs=0", "swap.trial_steps=10", "swap.slower=0", "swap.probation=0s", "swap.keep_state=true",
		"component.learner.swap=never", "env.cartpole.swap=never")
	if want := (graph.Swap{At: component.AtNow, TrialSteps: 10, KeepState: true}); g.Swap != want {
		t.Errorf("all given: %+v, want %+v", g.Swap, want)
	}
	if g.Component("learner").Swap != graph.SwapNever || g.Component("rollout").Swap != graph.SwapAlways || g.Env("cartpole").Swap != graph.SwapNever {
		t.Errorf("rules: learner %q, rollout %q, env %q", g.Component("learner").Swap, g.Component("rollout").Swap, g.Env("cartpole").Swap)
	}
}

func TestSwap_IsInTheExpandedForm(t *testing.T) {
	sets := []string{"swap.at=step", "swap.probation=90s", "component.learner.swap=never", "env.cartpole.swap=never"}
	g := parseFile(t, "../../pipeline.toml", sets...)
	text := g.Expanded()
	want := "\n[swap]\nat = \"step\"\ntrial_envs = 4\ntrial_steps = 2000\nslower = 4.0\nprobation = \"1m30s\"\nkeep_state = false\n"
	if !strings.Contains(text, want) || strings.Count(text, `swap = "never"`) != 2 {
		t.Errorf("expanded form:\n%s\nwant in it:\n%s", text, want)
	}
	again, problems := graphtest.Parse("expanded.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Standard()})
	if problems.Err() != nil || again.Hash() != g.Hash() || again.Swap != g.Swap {
		t.Errorf("read again: %v, %+v", problems, again)
	}
	if g.Hash() == parseFile(t, "../../pipeline.toml").Hash() {
		t.Error("other rules, same hash")
	}
}

// A version whose payload is described otherwise than its receivers take it, or its senders send it, does not come in: the wires are
// checked again. The components that rlhost brings along mean the host's schemas.
func TestWith_AVersionOfAnotherSchemaIsRefused(t *testing.T) {
	wire := func(from, to string) string {
		return "[[wire]]\nsignal = \"" + from + ".trajectories\"\nslot = \"" + to + ".on_trajectories\"\nmode = \"queue\"\ndepth = 8\non_full = \"block\"\n"
	}
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\nenv = \"cartpole\"\n" +
		"[component.first]\nruntime = \"wasm\"\nuse = \"./shaper.wasm\"\n" +
		wire("rollout", "first") + "replace = true\n" + wire("first", "batcher")
	parts := graphtest.Standard()
	running, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	payload := component.PayloadOf(component.PayloadTrajectory)
	next, problems := graphtest.With(running, []string{`component.first.use="./tagged.wasm"`}, parts)
	for _, want := range []string{
		fmt.Sprintf("error[E040]: payloads differ: both are trajectory, of schema %016x at rollout.trajectories and 0000000000000001 at first.on_trajectories", payload.Schema()),
		fmt.Sprintf("error[E040]: payloads differ: both are trajectory, of schema 0000000000000002 at first.trajectories and %016x at batcher.on_trajectories", payload.Schema()),
	} {
		if next != nil || !strings.Contains(problems.Error(), want) {
			t.Errorf("want %s, got\n%s", want, problems.Error())
		}
	}
}

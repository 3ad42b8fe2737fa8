package pipeline

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/fit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// closing counts how often it was closed.
type closing struct {
	graphtest.Described
	closed *int
}

func (c closing) Close() error { *c.closed++; return nil }

func TestCheck_ClosesWhatItLoads(t *testing.T) {
	closed := 0
	parts := graphtest.Loading()
	parts.Load = func(ctx context.Context, name string, e graph.EnvTable, dir string) (env.Plugin, error) {
		p, err := graphtest.Load(ctx, name, e, dir)
		if err != nil {
			return nil, err
		}
		return closing{p.(graphtest.Described), &closed}, nil
	}
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[env.gone]\nuse = \"./gone\"\n" +
		"[train]\npreset = \"ppo\"\nenv = \"cartpole\"\n"
	g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
	if g == nil {
		t.Fatal(problems)
	}
	if _, _, err := Check(t.Context(), g, parts); err == nil || closed != 1 {
		t.Errorf("Check: %v, %d plugins closed, want an error and 1", err, closed)
	}
}

// What blocks keep for a policy is forecast.
func TestForecast_CountsWhatPoliciesKeep(t *testing.T) {
	trajectories := func(net string) int64 {
		text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\n" + net
		g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: graphtest.Loading()})
		if g == nil {
			t.Fatal(problems)
		}
		needs, _, err := Check(t.Context(), g, graphtest.Loading())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needs {
			if strings.Contains(n.Keys, "rollout.horizon") {
				return n.Bytes
			}
		}
		t.Fatalf("needs %v", needs)
		return 0
	}
	plain, keeps := trajectories(""), trajectories("[policy.main]\nnet = { chunk = 16 }\n")
	if more := keeps - plain; more < 8*256*4 {
		t.Errorf("%d bytes with a state of 256 numbers for 8 environments, %d without", keeps, plain)
	}
}

// keeping is an environment that keeps a MiB for each of a batch.
type keeping struct{ graphtest.Described }

func (keeping) KeptBytes(envs int) int64 { return int64(envs) << 20 }

// What wrappers keep besides the blocks is forecast.
func TestForecast_CountsWhatEnvironmentsKeep(t *testing.T) {
	parts := graphtest.Loading()
	parts.Load = func(context.Context, string, graph.EnvTable, string) (env.Plugin, error) {
		return keeping{graphtest.Described{Obs: 4, Limit: 500}}, nil
	}
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\n[component.rollout]\nenvs = 8\nsplits = 2\n[component.batcher]\ndataset_rows = 1024\n"
	g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
	if g == nil {
		t.Fatal(problems)
	}
	needs, _, err := Check(t.Context(), g, parts)
	if err != nil {
		t.Fatal(err)
	}
	want := fit.Need{Keys: "component.rollout.envs = 8, env.cartpole.wrap", Bytes: 8 << 20}
	if !slices.Contains(needs, want) {
		t.Errorf("needs %v, want %v among them", needs, want)
	}
}

// weighed is a policy whose versions have 64 KiB.
type weighed struct{ graphtest.Policy }

func (weighed) WeightBytes() int { return 64 << 10 }

// Each reader of weights may hold one version while another is on its way to it.
func TestForecast_CountsAVersionForEachReaderAndItsWire(t *testing.T) {
	weights := func(more string) (bytes int64) {
		text := "rlhost = 1\n[run]\nname = \"x\"\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"ppo\"\n" + more
		parts := graphtest.Loading()
		parts.Policy = func(func(any) error, *hostabi.EnvSpec) (component.Policy, error) { return weighed{}, nil }
		g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
		if g == nil {
			t.Fatal(problems)
		}
		needs, _, err := Check(t.Context(), g, parts)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needs {
			if strings.Contains(n.Keys, "policy.main.net") {
				bytes = n.Bytes
			}
		}
		return bytes
	}
	alone := weights("")
	if least := int64(component.WeightBlocks(4) * (64 << 10)); alone < least || alone > least+8<<10 {
		t.Errorf("%d bytes for two readers, want %d and a little", alone, least)
	}
	pool := weights("[policy.past]\nof = \"main\"\n[component.rollout]\npolicies = { player = \"main\" }\nopponents = { past = 0.1 }\n")
	if more := pool - alone; more != 2*64<<10 {
		t.Errorf("%d bytes more for the pool of opponents, want %d", more, 2*64<<10)
	}
}

// large is a policy whose actors keep a GiB and whose learners keep three.
type large struct{ graphtest.Policy }

func (large) ActingBytes() int64   { return 1 << 30 }
func (large) LearningBytes() int64 { return 3 << 30 }

// What actors and learners keep for themselves counts against the machine, before any of it is made.
func TestCheck_CountsWhatNetworksTake(t *testing.T) {
	parts := graphtest.Loading()
	parts.Policy = func(func(any) error, *hostabi.EnvSpec) (component.Policy, error) { return large{}, nil }
	text := "rlhost = 1\n[run]\nname = \"x\"\n[env.duel]\nuse = \"./duel.wasm\"\n[train]\npreset = \"ppo\"\n"
	for limit, refused := range map[int64]bool{4 << 30: true, 6 << 30: false} {
		parts.Memory = limit
		g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
		if g == nil {
			t.Fatal(problems)
		}
		_, _, err := Check(t.Context(), g, parts)
		if !refused && err != nil || refused && (err == nil || !strings.Contains(err.Error(), "error[E044]: memory ") ||
			!strings.Contains(err.Error(), "(policy.main.net in component.learner: 3.0 GiB; policy.main.net in component.inference: 1.0 GiB; ")) {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

// Of a policy whose versions are drawn, what acts keeps several versions.
func TestCheck_CountsTheVersionsThatAreDrawn(t *testing.T) {
	parts := graphtest.Loading()
	parts.Memory = 4 << 30
	parts.Policy = func(func(any) error, *hostabi.EnvSpec) (component.Policy, error) { return large{}, nil }
	g, problems := graphtest.Parse("x.toml", []byte(`rlhost = 1
[run]
name = "x"
[env.duel]
use = "./duel.wasm"
[train]
preset = "ppo"
[policy.past]
of = "main"
[component.rollout]
policies = { player = "main" }
opponents = { past = 0.1 }
`), graph.ParseOptions{Parts: parts})
	if g == nil {
		t.Fatal(problems)
	}
	_, _, err := Check(t.Context(), g, parts)
	if err == nil || !strings.Contains(err.Error(), ".versions = 8, policy.past.net: 8.0 GiB; ") {
		t.Errorf("%v, want 8 GiB for the versions", err)
	}
}

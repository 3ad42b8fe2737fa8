package pipeline

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/metrics"
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
		forecast, _, err := Check(t.Context(), g, graphtest.Loading())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range forecast.Memory {
			if strings.Contains(n.Keys, "rollout.horizon") {
				return n.Bytes
			}
		}
		t.Fatalf("needs %v", forecast.Memory)
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
	forecast, _, err := Check(t.Context(), g, parts)
	if err != nil {
		t.Fatal(err)
	}
	want := fit.Need{Keys: "component.rollout.envs = 8, env.cartpole.wrap", Bytes: 8 << 20}
	if !slices.Contains(forecast.Memory, want) {
		t.Errorf("needs %v, want %v among them", forecast.Memory, want)
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
		forecast, _, err := Check(t.Context(), g, parts)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range forecast.Memory {
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

// What a run writes is bounded by its stop rule, or by a day, and follows rates that were measured.
func TestForecast_BoundsTheFilesOfARun(t *testing.T) {
	disk := func(more string, r fit.Rates) fit.Disk {
		text := "rlhost = 1\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\nmode = \"async\"\n[run]\nname = \"x\"\n" + more
		parts := graphtest.Loading()
		parts.Policy = func(func(any) error, *hostabi.EnvSpec) (component.Policy, error) { return weighed{}, nil }
		g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
		if g == nil {
			t.Fatal(problems)
		}
		forecast, _, err := Check(t.Context(), g, parts)
		if err != nil {
			t.Fatal(err)
		}
		return forecast.Disk(r)
	}
	endless := disk("", fit.Rates{})
	if endless.Stopped || endless.Metrics < 200<<20 || endless.Metrics > 300<<20 || endless.Episodes < 400<<20 || endless.Episodes > 1<<30 {
		t.Errorf("a day at most: %+v", endless)
	}
	if endless.Checkpoints != 4 || endless.Checkpoint != 3*64<<10 {
		t.Errorf("%g checkpoints of %g bytes, want the newest 3 and the best of 3 times the weights", endless.Checkpoints, endless.Checkpoint)
	}
	if hour := disk("stop = { wall_time = \"1h\" }\n", fit.Rates{}); !hour.Stopped || hour.Metrics >= endless.Metrics {
		t.Errorf("an hour: %+v", hour)
	}
	stopped := disk("stop = { env_steps = 1_000_000 }\ncheckpoint = { keep_every_env_steps = 100_000, best = false }\n", fit.Rates{})
	if !stopped.Stopped || stopped.Metrics > 5<<20 || stopped.Checkpoints != 13 {
		t.Errorf("a million env steps: %+v", stopped)
	}
	rates := fit.Rates{EnvSteps: 1000, Rows: 1, Row: 2000, Episodes: 5, Episode: 30, Checkpoint: 7}
	if got, want := disk("", rates).String(), "177.2 MiB on the disk after a day (metrics.jsonl 164.8 MiB, episodes.csv 12.4 MiB, 4 checkpoints of 0.0 KiB; at 1e+03 measured env steps/s)"; got != want {
		t.Errorf("measured: %s\nwant %s", got, want)
	}
	if d := disk("stop = { env_steps = 10_000 }\n", rates); !d.Stopped || d.Seconds != 10 || d.Metrics != 20000 || d.Episodes != 1500 {
		t.Errorf("ten measured seconds: %+v", d)
	}
	rates.Trace = 3000
	if d := disk("stop = { env_steps = 10_000 }\ntraces = \"traces.jsonl\"\nrecord = \"1MiB\"\n", rates); d.Traces != 30000 || d.Recording != 1<<20 ||
		d.Bytes() != 20000+1500+30000+1<<20+4*7 || !strings.Contains(d.String(), "traces 29.3 KiB, recording at most 1.0 MiB, ") {
		t.Errorf("ten traces, one a second: %+v", d)
	}
	if d := disk("traces = \"http://127.0.0.1:4318\"\n", fit.Rates{}); d.Traces != 0 {
		t.Errorf("traces that go to a server: %+v", d)
	}
	if d := disk("traces = \"traces.jsonl\"\n", fit.Rates{}); d.Traces < metrics.FullTraces || d.Traces > 2*metrics.FullTraces {
		t.Errorf("a day of traces: %+v", d)
	}
}

// saving is a plugin whose batches have states.
type saving struct{ env.Plugin }

func (saving) StateBytes(envs int) (int64, error) { return int64(envs) << 20, nil }

// A checkpoint of a synchronous run has the states of its environments.
func TestForecast_HasTheStatesOfEnvironments(t *testing.T) {
	for _, mode := range []string{"sync", "async"} {
		text := "rlhost = 1\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\nmode = \"" + mode + "\"\n[run]\nname = \"x\"\n"
		parts := graphtest.Loading()
		load := parts.Load
		parts.Load = func(ctx context.Context, name string, e graph.EnvTable, dir string) (env.Plugin, error) {
			p, err := load(ctx, name, e, dir)
			return saving{p}, err
		}
		g, problems := graphtest.Parse("x.toml", []byte(text), graph.ParseOptions{Parts: parts})
		if g == nil {
			t.Fatal(problems)
		}
		forecast, _, err := Check(t.Context(), g, parts)
		if err != nil {
			t.Fatal(err)
		}
		envs := g.Components[slices.IndexFunc(g.Components, func(x graph.Component) bool { return x.Flow.Envs > 0 })].Flow.Envs
		got := int(forecast.Disk(fit.Rates{}).Checkpoint)
		if states := envs << 20; g.Synchronous != (got > states) || got > states+envs*1000 {
			t.Errorf("%s: a checkpoint of %d bytes, the states of %d environments have %d", mode, got, envs, states)
		}
	}
}

// Where there is less room than the files of a run take, a warning says so, before anything runs.
func TestForecast_WarnsWhereThereIsNoRoom(t *testing.T) {
	parts := graphtest.Loading()
	g, problems := graphtest.Parse("x.toml", []byte("rlhost = 1\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\npreset = \"ppo\"\n[run]\nname = \"x\"\n"), graph.ParseOptions{Parts: parts})
	if g == nil {
		t.Fatal(problems)
	}
	forecast, _, err := Check(t.Context(), g, parts)
	if err != nil {
		t.Fatal(err)
	}
	d := fit.Disk{Metrics: 3 << 30, Seconds: 60, Stopped: true}
	for free, want := range map[int64]int{0: 0, 2 << 30: 1, 3 << 30: 0} {
		found := forecast.TooLarge(d, free)
		if len(found) != want || want > 0 && (found[0].Severity != graph.Warning || !strings.Contains(found[0].String(),
			"warning[W118]: a run's files take at most 3.0 GiB on the disk when it stops (metrics.jsonl 3.0 GiB, episodes.csv 0.0 KiB), and runs has room for 2.0 GiB")) {
			t.Errorf("%d bytes are free: %v", free, found)
		}
	}
}

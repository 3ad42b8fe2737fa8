package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/examples/plugins/chooser-go/chooser"
	"github.com/rlhost/rlhost/examples/plugins/curriculum-go/curriculum"
	"github.com/rlhost/rlhost/examples/plugins/episodes-go/episodes"
	"github.com/rlhost/rlhost/examples/plugins/opponent-go/opponent"
	"github.com/rlhost/rlhost/examples/plugins/shaper-go/shaper"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/internal/training"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/sdk/component"
)

// example is a short synchronous training with a component of a kind; %s is the place of its keys.
type example struct {
	kind     string
	make     func() component.Component
	pipeline string
	another  string // a set with which something else is learned
	// racy: in a process the component's releases of blocks arrive at any time, and rollouts wait for them.
	racy bool
}

var trainings = []example{
	{"chooser", chooser.New, chosen, "component.chooser.keep=2", true},
	{"opponent", opponent.New, played, "component.rollout.opponents.rules=0.1", false},
	{"curriculum", curriculum.New, raised, "component.curriculum.step=8", false},
	{"shaper", shaper.New, shaped, "component.shaper.scale=0.2", false},
}

const shaped = `
rlhost = 1
[run]
name = "shaped"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[component.rollout]
shaped_rewards = true
[component.shaper]
%s
scale = 0.1
shift = 0.5
[[wire]]
signal = "rollout.rewards"
slot = "shaper.on_rewards"
mode = "queue"
depth = 64
on_full = "block"
write = ["shaped_reward"]
[[wire]]
signal = "shaper.shaped"
slot = "rollout.on_shaped"
mode = "reply"
depth = 64
on_full = "block"
`

const logged = `
rlhost = 1
[run]
name = "logged"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[component.episodes]
%s
every = 100
[[wire]]
signal = "rollout.episodes"
slot = "episodes.on_episodes"
mode = "all"
depth = 4096
on_full = "block"
`

const raised = `
rlhost = 1
[run]
name = "raised"
stop = { env_steps = 16384 }
evaluation = { episodes = 4 }
[env.walk]
use = "../curriculum-c/walk.wasm"
[train]
preset = "ppo"
env = "walk"
mode = "sync"
[component.rollout]
reset_params = true
[component.curriculum]
%s
first = 2
last = 32
goal = 0.9
window = 10
[[wire]]
signal = "rollout.episodes"
slot = "curriculum.on_episodes"
mode = "all"
depth = 4096
on_full = "block"
[[wire]]
signal = "rollout.resets"
slot = "curriculum.on_resets"
mode = "queue"
depth = 64
on_full = "block"
write = ["reset_param"]
[[wire]]
signal = "curriculum.params"
slot = "rollout.on_params"
mode = "reply"
depth = 64
on_full = "block"
`

const played = `
rlhost = 1
[run]
name = "played"
stop = { env_steps = 4096 }
evaluation = { episodes = 4 }
[env.connectfour]
use = "connectfour@1"
[train]
preset = "ppo"
env = "connectfour"
mode = "sync"
[policy.rules]
env = "connectfour"
scripted = true
[component.rollout]
opponents = { rules = 1.0 }
[component.opponent]
%s
policy = "rules"
[[wire]]
signal = "rollout.obs_ready"
slot = "opponent.act"
mode = "all"
depth = 64
on_full = "block"
write = ["action"]
[[wire]]
signal = "opponent.actions"
slot = "rollout.on_actions"
mode = "reply"
depth = 64
on_full = "block"
`

const chosen = `
rlhost = 1
[run]
name = "chosen"
stop = { env_steps = 8192 }
evaluation = { episodes = 1 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "ppo"
env = "cartpole"
mode = "sync"
[component.rollout]
envs = 9
splits = 3
[component.batcher]
dataset_rows = 384
[component.chooser]
%s
of = 3
keep = 1
[[wire]]
signal = "rollout.trajectories"
slot = "chooser.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
replace = true
[[wire]]
signal = "chooser.trajectories"
slot = "batcher.on_trajectories"
mode = "queue"
depth = 64
on_full = "block"
`

// builtIn returns the keys of the component built in.
func (x *example) builtIn() string { return fmt.Sprintf("kind = %q", x.kind) }

func (x *example) train(t *testing.T, keys string, sets ...string) *session.Result {
	t.Helper()
	result, _ := x.measured(t, keys, sets...)
	return result
}

// measured returns the metrics, too.
func (x *example) measured(t *testing.T, keys string, sets ...string) (*session.Result, *stat.Registry) {
	t.Helper()
	return training.Must(t, fmt.Sprintf(x.pipeline, keys), training.Kinds{x.kind: x.make}, sets...)
}

// build returns the path of the native plugin.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "components")
	testkit.Build(t, ".", program)
	return program
}

// A policy that has learned nothing yet plays at random, and loses nearly every game against the rules.
func TestOpponent_BeatsARandomPlayer(t *testing.T) {
	x := trainings[1]
	r := x.train(t, x.builtIn(), "component.learner.learning_rate=1e-12", "run.stop.env_steps=8192")
	if r.Episodes < 100 || !(r.MeanReturn < -0.9) {
		t.Errorf("after %d games the player has a mean return of %.2f, want nearly -1", r.Episodes, r.MeanReturn)
	}
}

// A training learns the same, bit for bit, with a component built in, as a process, and as a module in each language.
func TestComponents_LearnTheSameInAllRuntimes(t *testing.T) {
	program := build(t)
	for _, x := range trainings {
		t.Run(x.kind, func(t *testing.T) {
			train := func(keys string, sets ...string) *session.Result { return x.train(t, keys, sets...) }
			want := train(x.builtIn())
			if other := train(x.builtIn(), x.another); other.ParamsHash == want.ParamsHash {
				t.Errorf("with %s the parameters are the same: the component does nothing", x.another)
			}
			if got := train(fmt.Sprintf("plugin = \"p\"\nkind = %q", x.kind), "plugin.p.path="+program); got.ParamsHash != want.ParamsHash && !x.racy || got.ParamsHash == "" {
				t.Errorf("as a process: parameters %.12s, built in %.12s", got.ParamsHash, want.ParamsHash)
			}
			for name, module := range testkit.Guests(t, x.kind, t.TempDir()) {
				if got := train(fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"log\", \"metric\"]", module)); got.ParamsHash != want.ParamsHash {
					t.Errorf("%s: parameters %.12s, built in %.12s", name, got.ParamsHash, want.ParamsHash)
				}
			}
		})
	}
}

// A logger counts the episodes that the run counts, built in, as a process, and as a module in each language, and nothing else changes.
func TestEpisodes_CountsTheSameInAllRuntimes(t *testing.T) {
	x := example{kind: "episodes", make: episodes.New, pipeline: logged}
	keys := map[string]string{"built in": x.builtIn(), "as a process": fmt.Sprintf("plugin = \"p\"\nkind = %q", x.kind)}
	for name, module := range testkit.Guests(t, x.kind, t.TempDir()) {
		keys[name] = fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"log\", \"metric\"]", module)
	}
	program, want := build(t), ""
	for name, own := range keys {
		r, metrics := x.measured(t, own, "plugin.p.path="+program)
		if want == "" {
			want = r.ParamsHash
		}
		n, most := metrics.Counter("episodes/count").Value(), metrics.Gauge("episodes/longest").Value()
		if n != r.Episodes || n == 0 || most < r.MeanReturn || r.ParamsHash != want {
			t.Errorf("%s: %d episodes of %d counted, the longest of %v env steps; parameters %.12s, want %.12s", name, n, r.Episodes, most, r.ParamsHash, want)
		}
	}
}

// An environment that takes reset parameters is the same in each language: learning with a curriculum shows it.
func TestWalk_LearnsTheSameInAllLanguages(t *testing.T) {
	x := trainings[2]
	want := x.train(t, x.builtIn())
	for name, module := range testkit.Guests(t, "walk", t.TempDir()) {
		if got := x.train(t, x.builtIn(), "env.walk.use="+module); got.ParamsHash != want.ParamsHash || got.Episodes != want.Episodes {
			t.Errorf("%s: parameters %.12s after %d episodes, want %.12s after %d", name, got.ParamsHash, got.Episodes, want.ParamsHash, want.Episodes)
		}
	}
}

// The check of environments leaves reset parameters alone, however it lays blocks out.
func TestWalk_PassesTheCheck(t *testing.T) {
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for name, module := range testkit.Guests(t, "walk", t.TempDir()) {
		p, err := r.Load(t.Context(), module, nil, env.Source{})
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range envcheck.Run(t.Context(), p, envcheck.Options{Steps: 300, Seed: 1}) {
			if got.Verdict == envcheck.Failed {
				t.Errorf("%s: %s %s: %s", name, got.ID, got.Title, got.Detail)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The level of an episode rises while the policy succeeds, and stops at the last one.
func TestCurriculum_RisesWithTheSuccess(t *testing.T) {
	x := trainings[2]
	var made []component.Component
	x.make = func() component.Component {
		made = append(made, curriculum.New())
		return made[len(made)-1]
	}
	r := x.train(t, x.builtIn(), "component.curriculum.last=4", "run.stop.env_steps=32768")
	highest := 0.0
	for _, c := range made {
		state, err := c.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		highest = max(highest, math.Float64frombits(binary.LittleEndian.Uint64(state)))
	}
	if highest != 4 {
		t.Errorf("the level has come to %v, want 4", highest)
	}
	if !(r.MeanReturn > 0.9) {
		t.Errorf("the mean return in corridors of 4 is %v", r.MeanReturn)
	}
}

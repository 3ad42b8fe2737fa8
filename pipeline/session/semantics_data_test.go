package session_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/builtin"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// Trajectories are functions of the run's seed and the environments: how they are spread over rollouts, splits and
// inference batches changes no bit of any column, nor of the parameters learned from them.
func TestS1TrajectoriesDoNotDependOnHowEnvironmentsAreSpread(t *testing.T) {
	for name, x := range map[string]experiment{"plain": {script: uneven()}, "masked": {script: masked()}, "with a GRU": {script: masked(), sets: []string{core("gru", 4)}}} {
		t.Run(name, func(t *testing.T) {
			want := x.must(t)
			for _, sets := range [][]string{
				{"component.rollout.splits=1"},
				{"component.rollout.splits=4"},
				{"component.rollout.splits=8"},
				{"component.rollout.count=2", "component.rollout.envs=4", "component.rollout.splits=1"},
				{"component.rollout.count=2", "component.rollout.envs=4", "component.rollout.splits=2"},
				{"component.rollout.layout=soa"},
				{"component.inference.max_rows=1"},
				{"component.inference.max_rows=3"},
				{"component.inference.count=2"},
			} {
				got := experiment{script: x.script, sets: append(sets, x.sets...)}.must(t)
				sameRows(t, fmt.Sprint(sets), got.rows(t), want.rows(t))
				if !slices.Equal(got.hashes, want.hashes) {
					t.Errorf("%v: parameters after each dataset are %.8s, want %.8s", sets, got.hashes, want.hashes)
				}
			}
		})
	}
}

// labGuest loads a guest of the scripts of cmd/rlhost, built from C.
func labGuest(t *testing.T, name string, grants ...string) env.Plugin {
	t.Helper()
	r, err := wasm.New(wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../cmd/rlhost/testdata/guests/" + name + ".wasm")
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Load(t.Context(), name+".wasm", module, env.Source{Name: "lab", Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Random bytes that a module asks the host for depend on its environment alone, whichever environments share the instance.
func TestS1EntropyDependsOnSeedAndEnvironmentAlone(t *testing.T) {
	p := labGuest(t, "entropy")
	run := func(sets ...string) map[int][]labRow {
		return experiment{plugin: keepOpen{p}, sets: sets}.must(t).rows(t)
	}
	want := run()
	for _, sets := range [][]string{
		{"component.rollout.splits=1"}, {"component.rollout.splits=8"},
		{"component.rollout.count=2", "component.rollout.envs=4", "component.rollout.splits=1"},
	} {
		sameRows(t, fmt.Sprint(sets), run(sets...), want)
	}
	seen := map[[plugintest.ObsElems]float32]bool{}
	for _, rows := range want {
		for _, r := range rows {
			seen[r.obs] = true
		}
	}
	if len(seen) < 500 {
		t.Errorf("%d different draws in 512 rows", len(seen))
	}
	other := run("run.seed=8")
	for env, rows := range other {
		if rows[0].obs == want[env][0].obs {
			t.Errorf("environment %d draws the same with another seed", env)
		}
	}
}

// Two components that run environments number them in one row: they are no copies of each other.
func TestS1RolloutComponentsShareNoEnvironment(t *testing.T) {
	const second = `
[component.more]
kind = "rollout"
loop = "rollout"
env = "lab"
envs = 4
splits = 1
horizon = 16
[[wire]]
signal = "more.obs_ready"
slot = "inference.act"
mode = "queue"
depth = 64
on_full = "block"
[[wire]]
signal = "inference.actions"
slot = "more.on_actions"
mode = "reply"
depth = 64
on_full = "block"
[[wire]]
signal = "more.trajectories"
slot = ["batcher.on_trajectories", "tap.on_trajectories"]
mode = "all"
depth = 64
on_full = "block"
[[wire]]
signal = "more.episodes"
slot = ["runner.on_episodes", "tap.on_episodes"]
mode = "all"
depth = 4096
on_full = "block"
`
	want := experiment{script: uneven()}.must(t)
	got := experiment{script: uneven(), extra: second, sets: []string{"component.rollout.envs=4", "component.rollout.splits=1"}}.must(t)
	sameRows(t, "two components", got.rows(t), want.rows(t))
	if !slices.Equal(got.hashes, want.hashes) {
		t.Errorf("parameters %.8s, want %.8s", got.hashes, want.hashes)
	}
}

// A row's outputs are a function of the weights, its observation and mask, and the key (run seed, environment, env
// step): another actor that gets each row alone with that key returns the same bits.
func TestS1ActionsAreKeyedByRunEnvironmentAndStep(t *testing.T) {
	o := experiment{script: masked(), sets: []string{"component.learner.learning_rate=0"}}.must(t)
	made, err := builtin.DecodePolicy(netOfTheLab, &o.blocks[0].Schema.Spec)
	if err != nil {
		t.Fatal(err)
	}
	p := made.(*policy.Definition)
	actor, err := policy.NewActor(p.Backend, &p.Network, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := actor.Load(policy.Weights{Params: policy.Init(&p.Network, 7)}); err != nil {
		t.Fatal(err)
	}
	actions := map[int32]int{}
	for i := range o.blocks {
		b := &o.blocks[i]
		for step := range b.Schema.Shape.Steps {
			for env := range b.Schema.Shape.Envs {
				want := b.row(step, env)
				out := trajectory.Matrix{DType: hostabi.I32, Data: bytes.Repeat([]byte{0xff}, 4), Rows: 1, Elems: 1, StrideRow: 4, StrideElem: 4}
				action, logProb, value := out.Int32(), []float32{0}, []float32{0}
				err := actor.Act([]policy.Request{{
					Obs:    []trajectory.Matrix{b.Row(trajectory.Obs, step).Slice(env, env+1)},
					Mask:   []trajectory.Matrix{b.Row(trajectory.Mask, step).Slice(env, env+1)},
					Action: []trajectory.Matrix{out}, LogProb: logProb, Value: value, Seed: 7, FirstEnv: uint32(want.env), Step: want.step,
				}})
				if err != nil {
					t.Fatal(err)
				}
				if action[0] != want.action || logProb[0] != want.logProb || value[0] != want.value {
					t.Fatalf("%+v: alone it comes to action %d, log-probability %v, value %v", want, action[0], logProb[0], value[0])
				}
				actions[action[0]]++
			}
		}
	}
	if len(actions) != 3 || len(o.blocks) < 8 {
		t.Errorf("actions %v in %d blocks: the test looks at too little", actions, len(o.blocks))
	}
}

// netOfTheLab decodes the lab's policy.
func netOfTheLab(into any) error {
	into.(*builtin.PolicyTable).Net.Hidden = []int{16}
	return nil
}

func TestS1ARunRepeatsItselfAndOtherSeedsDoNot(t *testing.T) {
	want := experiment{script: uneven()}.must(t)
	if again := (experiment{script: uneven()}).must(t); !slices.Equal(again.hashes, want.hashes) {
		t.Errorf("the same run again has parameters %.8s, want %.8s", again.hashes, want.hashes)
	}
	if other := (experiment{script: uneven(), sets: []string{"run.seed=8"}}).must(t); slices.Equal(other.hashes, want.hashes) {
		t.Errorf("seeds 7 and 8 learn the same parameters")
	}
}

// Neighbouring runs must not use each other's random numbers, as they do where the seed of an environment is the
// run's seed plus an index.
func TestS1RunsShareNoStream(t *testing.T) {
	const runs, envs, steps = 10, 256, 4
	seen := map[uint64]string{}
	draws := map[[steps]float32]string{}
	for run := range uint64(runs) {
		for index := range envs {
			name := fmt.Sprintf("run %d environment %d", run, index)
			seed := env.Seed(run, index)
			if before, taken := seen[seed]; taken {
				t.Errorf("%s has the seed of %s", name, before)
			}
			seen[seed] = name
			var draw [steps]float32
			for step := range draw {
				draw[step] = policy.Uniform(run, uint32(index), uint64(step), 0)
			}
			if before, taken := draws[draw]; taken {
				t.Errorf("%s samples the actions of %s", name, before)
			}
			draws[draw] = name
		}
	}
	chances := map[float32]uint64{}
	for run := range uint64(runs) {
		o := experiment{script: uneven(), sets: []string{fmt.Sprintf("run.seed=%d", run), "run.stop.env_steps=128"}}.must(t)
		for _, rows := range o.rows(t) {
			for i := range rows {
				chance := rows[i].obs[plugintest.ObsChance]
				if before, taken := chances[chance]; taken && before != run {
					t.Errorf("runs %d and %d both drew %v", before, run, chance)
				}
				chances[chance] = run
			}
		}
	}
}

package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Trajectories are functions of the run's seed and the environments: how they are spread over rollouts, splits and
// inference batches changes no bit of any column, nor of the parameters learned from them.
func TestS1TrajectoriesDoNotDependOnHowEnvironmentsAreSpread(t *testing.T) {
	for name, script := range map[string]plugintest.Script{"plain": uneven(), "masked": masked()} {
		t.Run(name, func(t *testing.T) {
			want := experiment{script: script}.must(t)
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
				got := experiment{script: script, sets: sets}.must(t)
				sameRows(t, fmt.Sprint(sets), got.rows(t), want.rows(t))
				if !slices.Equal(got.hashes, want.hashes) {
					t.Errorf("%v: parameters after each dataset are %.8s, want %.8s", sets, got.hashes, want.hashes)
				}
			}
		})
	}
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
		for env := range envs {
			name := fmt.Sprintf("run %d environment %d", run, env)
			seed := rollout.EnvSeed(run, env)
			if before, taken := seen[seed]; taken {
				t.Errorf("%s has the seed of %s", name, before)
			}
			seen[seed] = name
			var draw [steps]float32
			for step := range draw {
				draw[step] = policy.Uniform(run, uint32(env), uint64(step), 0)
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

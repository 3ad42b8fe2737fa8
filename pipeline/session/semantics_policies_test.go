package session_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/learner"
)

// twoPolicies play one side each, with their own networks.
const twoPolicies = `
[policy.rival]
net = { kind = "mlp", hidden = [24, 8], activation = "relu" }
[component.rollout.policies]
"*/0" = "main"
"*/1" = "rival"
[component.learner_rival]
learning_rate = 1e-3
`

// threePolicies are two that learn, of which main plays both sides in most games, and versions that main has had.
const threePolicies = `
[policy.rival]
net = { kind = "mlp", hidden = [8], activation = "tanh" }
[policy.past]
of = "main"
[component.opponents_past]
every_versions = 2
[component.rollout.policies]
"*/*" = "main"
[component.rollout.opponents]
rival = 0.3
past = 0.3
`

// twoCores play one side each, and keep a state each, of different kinds and sizes.
const twoCores = `
[policy.rival]
net = { hidden = [8], core = { kind = "lstm", size = 6 }, chunk = 8 }
[component.rollout.policies]
"*/0" = "main"
"*/1" = "rival"
[[wire]]
signal = "learner_rival.stats"
slot = "tap.on_stats"
mode = "all"
depth = 256
on_full = "block"
`

// twoGroups have separate policies, because they observe and do different things, and one also plays against its own past.
const twoGroups = `
[policy.rival]
net = { kind = "mlp", hidden = [8], activation = "tanh" }
[policy.past]
of = "rival"
[component.opponents_past]
every_versions = 2
[component.rollout.policies]
hunters = "main"
prey = "rival"
[component.rollout.opponents]
past = 0.3
`

// learnt are the first digits of the hashes of the parameters of every learner in a state.
func learnt(t *testing.T, states map[string]component.State) map[string]string {
	t.Helper()
	hashes := map[string]string{}
	for name, state := range states {
		if _, w, err := learner.Weights(state); err == nil {
			hashes[name] = runs.ParamsHash(w.Params)[:8]
		}
	}
	return hashes
}

// What several policies learn in one rollout depends neither on the split of its environments over blocks, nor on the blocks'
// old contents, nor on a stop in between.
func TestS21_PoliciesLearnTheSameInOtherSplitsAndAfterAResume(t *testing.T) {
	for name, of := range map[string]struct {
		use, extra string
		sets       []string
	}{
		"two": {use: "connectfour@1", extra: twoPolicies}, "three": {use: "connectfour@1", extra: threePolicies}, "groups": {use: "tag@1", extra: twoGroups},
		"cores": {"connectfour@1", twoCores, []string{`policy.main.net={ hidden = [8], core = { kind = "gru", size = 8 }, chunk = 4 }`}},
	} {
		t.Run(name, func(t *testing.T) {
			// run returns the parameters at each boundary.
			run := func(x experiment, sets ...string) (all []map[string]string, o *outcome) {
				if x.load == nil {
					x.load = guest(of.use)
				}
				x.extra, x.sets = of.extra, slices.Concat(sets, of.sets, []string{"component.learner.epochs=1", "component.learner_rival.epochs=1"})
				x.boundary = func(_ *pipeline.Pipeline, _ int, snapshot func() (map[string]component.State, error)) error {
					states, err := snapshot()
					all = append(all, learnt(t, states))
					return err
				}
				o = x.must(t)
				return all, o
			}
			equal := func(what string, got, want []map[string]string) {
				t.Helper()
				for i := range want {
					if i >= len(got) || !maps.Equal(got[i], want[i]) {
						t.Errorf("%s: %d boundaries, at that of number %d %v, want %d, %v", what, len(got), i, got[min(i, len(got)-1)], len(want), want[i])
						return
					}
				}
			}
			const all, half = "run.stop.env_steps=2048", "run.stop.env_steps=1024"
			whole, one := run(experiment{}, all)
			if len(whole) < 6 || len(whole[0]) != 2 {
				t.Fatalf("%d boundaries, with the policies %v", len(whole), whole[0])
			}
			ratios := one.reported("losses/first_ratio_error") // in synchronous mode the learner has the acting weights
			if name != "groups" {
				ratios = ratios[:1] // later datasets have decisions that were open where the one before ended
			}
			if err := only(ratios, 0); err != nil {
				t.Errorf("first ratios: %v", err)
			}
			split, _ := run(experiment{}, all, "component.rollout.splits=4")
			equal("in 4 splits", split, whole)
			poisoned, _ := run(experiment{load: poisoning(guest(of.use))}, all)
			equal("in blocks that held nonsense", poisoned, whole)
			first, stopped := run(experiment{}, half)
			rest, _ := run(experiment{resume: stopped.states}, all)
			equal("resumed", append(first, rest...), whole)
		})
	}
}

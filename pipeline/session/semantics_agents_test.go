package session_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/envcheck"
)

// loader loads the environment of an experiment.
type loader = func(context.Context, string, graph.EnvTable, string) (env.Plugin, error)

// guest loads an environment that the program brings along, in the place of the lab's.
func guest(use string) loader {
	parts, _ := builtin.New(builtin.Options{})
	return func(ctx context.Context, name string, table graph.EnvTable, dir string) (env.Plugin, error) {
		table.Use = use
		return parts.Load(ctx, name, table, dir)
	}
}

// poisoning has environments loaded that step into blocks full of nonsense.
func poisoning(load loader) loader {
	return func(ctx context.Context, name string, table graph.EnvTable, dir string) (env.Plugin, error) {
		p, err := load(ctx, name, table, dir)
		return meddled{p, &meddler{bound: poison}}, err
	}
}

// meddled makes another plugin's environments and tampers with their blocks.
type meddled struct {
	env.Plugin
	meddler *meddler
}

func (p meddled) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &meddling{Env: e, meddler: p.meddler, first: o.FirstEnv}, err
}

// What agents do depends neither on the split of their environments over blocks, nor on the blocks' old contents, nor on a stop in between.
func TestS21_AgentsLearnTheSameInOtherSplitsAndAfterAResume(t *testing.T) {
	for _, use := range []string{"chase@1", "connectfour@1", "snake@1"} {
		t.Run(use, func(t *testing.T) {
			run := func(x experiment, sets ...string) *outcome {
				if x.load == nil {
					x.load = guest(use)
				}
				x.sets = append(sets, "component.learner.epochs=1")
				return x.must(t)
			}
			const all, half = "run.stop.env_steps=4096", "run.stop.env_steps=2048"
			whole := run(experiment{}, all)
			if split := run(experiment{}, all, "component.rollout.splits=4"); !slices.Equal(split.hashes, whole.hashes) {
				t.Errorf("in 4 splits it learns %v, in 2 %v", split.hashes, whole.hashes)
			}
			poisoned := run(experiment{load: poisoning(guest(use))}, all)
			if !slices.Equal(poisoned.hashes, whole.hashes) {
				t.Errorf("in blocks that held nonsense it learns %v, in others %v", poisoned.hashes, whole.hashes)
			}
			first := run(experiment{}, half)
			rest := run(experiment{resume: first.states}, all)
			if got := append(first.hashes, rest.hashes...); !slices.Equal(got, whole.hashes) {
				t.Errorf("resumed it learns %v, in one go %v", got, whole.hashes)
			}
		})
	}
}

// A policy's state of an agent does not change while the agent does not act: with the weights that acted the learner
// computes the very same probabilities.
func TestS21_StateStandsStillWhileAnAgentDoesNotAct(t *testing.T) {
	const keeps = "policy.main.net.core={ kind = \"gru\", size = 8 }"
	for _, use := range []string{"connectfour@1", "snake@1"} {
		t.Run(use, func(t *testing.T) {
			run := func(x experiment, sets ...string) *outcome {
				if x.load == nil {
					x.load = guest(use)
				}
				x.sets = append(sets, keeps, "policy.main.net.chunk=4", "component.learner.epochs=1", "component.learner.minibatch=100000")
				return x.must(t)
			}
			const all, half = "run.stop.env_steps=4096", "run.stop.env_steps=2048"
			whole := run(experiment{}, all)
			turns := use == "connectfour@1" // decisions that are carried into a dataset are of the version before
			for i, r := range whole.reports {
				if r["losses/first_ratio_error"] != 0 && !(turns && i > 0) || r["losses/valid_rows"] == 0 {
					t.Errorf("dataset %d: the first ratios are off by %v over %v rows", i, r["losses/first_ratio_error"], r["losses/valid_rows"])
				}
			}
			if split := run(experiment{}, all, "component.rollout.splits=4"); !slices.Equal(split.hashes, whole.hashes) {
				t.Errorf("in 4 splits it learns %v, in 2 %v", split.hashes, whole.hashes)
			}
			if poisoned := run(experiment{load: poisoning(guest(use))}, all); !slices.Equal(poisoned.hashes, whole.hashes) {
				t.Errorf("in blocks that held nonsense it learns %v, in others %v", poisoned.hashes, whole.hashes)
			}
			first := run(experiment{}, half)
			rest := run(experiment{resume: first.states}, all)
			if got := append(first.hashes, rest.hashes...); !slices.Equal(got, whole.hashes) {
				t.Errorf("resumed it learns %v, in one go %v", got, whole.hashes)
			}
		})
	}
}

// An agent's errors are found, and the message names the agent.
func TestS21_ChecksLookAtEachAgent(t *testing.T) {
	p, err := guest("connectfour@1")(t.Context(), "", graph.EnvTable{Source: env.DefaultSource()}, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	idle := func(b env.Block, t int) int { return slices.Index(b.Acts(t+1), 0) }
	for what, c := range map[string]struct {
		check, want string
		spoil       func(b env.Block, t int)
	}{
		"a mask": {"G01", "and element 3 of its mask is 0", func(b env.Block, t int) {
			m := b.Row(trajectory.Mask, t+1)
			m.Data[idle(b, t)*m.StrideRow+3] = 0
		}},
		"an activity": {"A01", "active is 2, want 0 or 1", func(b env.Block, t int) { b.Acts(t + 1)[5] = 2 }},
		"an observation": {"A01", "agent 1: ", func(b env.Block, t int) {
			m := b.Row(trajectory.Obs, t+1)
			m.Float32()[5*m.StrideRow/4] = float32(math.NaN())
		}},
		"nobody": {"A01", "no agent has acted in 1000 steps", func(b env.Block, t int) { clear(b.Acts(t + 1)[:2]) }},
	} {
		broken := meddled{p, &meddler{stepped: func(b env.Block, _, t int, call uint64) { c.spoil(b, t) }}}
		found := ""
		for _, r := range envcheck.Run(t.Context(), broken, envcheck.Options{Seed: 1, Steps: 1100}) {
			if r.ID == c.check && r.Verdict == envcheck.Failed {
				found = r.Detail
			}
		}
		if !strings.Contains(found, c.want) {
			t.Errorf("%s: %s says %q, want %q", what, c.check, found, c.want)
		}
	}
}

package session_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
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
		return poisoned{p}, err
	}
}

type poisoned struct{ env.Plugin }

func (p poisoned) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &meddling{Env: e, meddler: &meddler{bound: poison}}, err
}

// What agents do depends neither on how their environments are split over blocks, nor on what stood in those, nor on a stop in between.
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

package evaluation_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// sleeping is a game in which no agent acts after that many steps.
type sleeping struct {
	env.Plugin
	after int
}

func (p sleeping) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &sleepingEnv{Env: e, awake: p.after}, err
}

type sleepingEnv struct {
	env.Env
	awake int
	block env.Block
}

func (e *sleepingEnv) Bind(b env.Block) error {
	e.block = b
	return e.Env.Bind(b)
}

func (e *sleepingEnv) Step(t int) error {
	if e.awake--; e.awake >= 0 {
		return e.Env.Step(t)
	}
	e.block.CopyObserved(t+1, e.block.Trajectory, t)
	for _, c := range []trajectory.Column{trajectory.Reward, trajectory.Terminated, trajectory.Truncated} {
		clear(e.block.Row(c, t).Data)
	}
	clear(e.block.Acts(t + 1))
	return nil
}

// An evaluation of an environment in which no agent acts any more ends with the same error as a training, well before max_steps.
func TestRun_EnvironmentInWhichNobodyActsIsNamed(t *testing.T) {
	g := load(t, "connectfour@1")
	for name, o := range map[string]evaluation.Options{
		"one policy":   {Player: g.player(1, "")},
		"two policies": {Player: g.player(1, ""), Others: []evaluation.Player{g.player(2, "")}, Plays: func(_, agent int) int { return agent }},
	} {
		o.Plugin, o.Episodes, o.Envs, o.MaxSteps = sleeping{g.plugin, 4}, 4, 2, 100_000
		_, err := evaluation.Run(t.Context(), o)
		var f *env.Fault
		want := "evaluation env 0: output in rl_step at step 1006: environment wrote a value that is not allowed: no agent has acted in 1000 steps: somebody must be active"
		if !errors.As(err, &f) || f.Call != hostabi.ExportStep || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	o := evaluation.Options{Plugin: sleeping{g.plugin, 4}, Player: g.player(1, ""), Episodes: 4, Envs: 2, MaxSteps: 500}
	if r, err := evaluation.Run(t.Context(), o); err != nil || r.Unfinished != 4 {
		t.Errorf("with fewer steps to an episode: %v, %+v", err, r)
	}
}

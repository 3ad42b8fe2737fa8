package evaluation_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// stalling are environments whose third step takes until they are abandoned.
type stalling struct{ env.Plugin }

func (p stalling) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &stallingEnv{Env: e, wanted: o.Wanted}, err
}

type stallingEnv struct {
	env.Env
	wanted context.Context
	steps  int
}

func (e *stallingEnv) Step(t int) error {
	if e.steps++; e.steps < 3 {
		return e.Env.Step(t)
	}
	<-e.wanted.Done()
	return errors.New("the step was cut")
}

// late are environments that nobody waits for any more when they have been made.
type late struct{ env.Plugin }

func (late) NewEnv(o env.Options) (env.Env, error) {
	<-o.Wanted.Done()
	return nil, errors.New("the creation was cut")
}

// Environments that are made when the time is over are nobody's fault.
func TestRun_EnvironmentsThatComeTooLateAreCut(t *testing.T) {
	g := load(t, "cartpole@1")
	o := evaluation.Options{Plugin: late{g.plugin}, Player: g.player(1, ""), Episodes: 2, Envs: 2, Greedy: true, Until: time.Now()}
	if r, err := evaluation.Run(t.Context(), o); err != nil || !r.Cut || !r.Greedy || len(r.Returns) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// An evaluation ends with its time, and with its context, though a step takes longer.
func TestRun_AStepThatTakesLongIsCut(t *testing.T) {
	g := load(t, "cartpole@1")
	o := evaluation.Options{Plugin: stalling{g.plugin}, Player: g.player(1, ""), Episodes: 2, Envs: 2, Until: time.Now().Add(time.Millisecond)}
	if r, err := evaluation.Run(t.Context(), o); err != nil || !r.Cut || len(r.Returns) != 0 {
		t.Errorf("with a time: %+v, %v", r, err)
	}
	o.Until = time.Time{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if r, err := evaluation.Run(ctx, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context: %+v, %v", r, err)
	}
}

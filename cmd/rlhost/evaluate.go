package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"

	"github.com/rlhost/rlhost/gpu/policy"

	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/plugins/runner"
)

// played is how a policy did with its actions picked in one way.
type played struct {
	Return     float64   `json:"mean_return"`
	Std        float64   `json:"std_return"`
	Length     float64   `json:"mean_length"`
	Unfinished int       `json:"unfinished"` // episodes that were given up
	Returns    []float64 `json:"-"`
}

// evaluated is how a policy did in an evaluation: greedily and with sampled actions, in the same episodes.
type evaluated struct {
	greedy, sampled played
	deterministic   bool // the greedy one is judged
	maxSteps        uint64
}

// judged is the part that the run is judged by.
func (e *evaluated) judged() *played {
	if e.deterministic {
		return &e.greedy
	}
	return &e.sampled
}

// String tells both, what is judged first.
func (e *evaluated) String() string {
	first, second, words := e.judged(), &e.sampled, "sampled"
	if !e.deterministic {
		second, words = &e.greedy, "deterministic"
	}
	return fmt.Sprintf("%s over %d episodes%s, %s; %s %s%s", returnText(first.Return, first.Std), len(first.Returns),
		e.unfinished(first), howActed(e.deterministic), words, returnText(second.Return, second.Std), e.unfinished(second))
}

// unfinished tells how many episodes were given up, if any were.
func (e *evaluated) unfinished(p *played) string {
	if p.Unfinished == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d unfinished after %d env steps)", p.Unfinished, e.maxSteps)
}

// howActed says how the actions of an evaluation were picked.
func howActed(greedy bool) string {
	if greedy {
		return "deterministic actions"
	}
	return "sampled actions"
}

// evaluate plays the frozen evaluation that the file asks for.
func (t *training) evaluate(ctx context.Context, w policy.Weights) (*evaluated, error) {
	plugin, err := t.pipeline.Env(t.policyEnv())
	if err != nil {
		return nil, err
	}
	return evaluate(ctx, plugin, t.definition(), w, optionsOf(t.running(), uint64(t.gauge(runner.LongestEpisode))))
}

// evaluationOptions say what is played and judged.
type evaluationOptions struct {
	evaluation.Options
	deterministic bool
}

// optionsOf is the evaluation that a pipeline asks for, after a training whose longest episode had so many env steps.
func optionsOf(g *graph.Graph, longest uint64) evaluationOptions {
	e := g.Run.Evaluation
	most := max(10*longest, 10_000)
	if e.MaxSteps > 0 {
		most = uint64(e.MaxSteps)
	}
	return evaluationOptions{deterministic: e.Deterministic, Options: evaluation.Options{
		Episodes: e.Episodes, Seed: e.Seed, EpisodeLimit: episodeLimit(g), MaxSteps: most,
	}}
}

// episodeLimit is the time limit that the rollouts of a pipeline apply themselves, 0 if they apply none.
func episodeLimit(g *graph.Graph) int {
	limit := 0
	for i := range g.Components {
		if n := g.Components[i].Flow.EpisodeLimit; n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}

// evaluate plays the episodes twice at the same time, greedily and with sampled actions.
func evaluate(ctx context.Context, plugin env.Plugin, d *policy.Definition, w policy.Weights, o evaluationOptions) (*evaluated, error) {
	o.Plugin = plugin
	greedy, sampled := o.Options, o.Options
	greedy.Greedy = true
	e := &evaluated{deterministic: o.deterministic, maxSteps: o.MaxSteps}
	other := make(chan error, 1)
	go func() {
		var err error
		e.sampled, err = playOnce(ctx, d, w, sampled)
		other <- err
	}()
	var err error
	e.greedy, err = playOnce(ctx, d, w, greedy)
	if err = errors.Join(err, <-other); err != nil {
		return nil, err
	}
	return e, nil
}

// playOnce plays all episodes in one way, with environments and a policy of its own.
func playOnce(ctx context.Context, d *policy.Definition, w policy.Weights, o evaluation.Options) (played, error) {
	const most = 32
	turns := (o.Episodes + most - 1) / most
	envs := (o.Episodes + turns - 1) / turns // so that few are idle in the last turn
	actor, err := policy.NewActor(d.Backend, &d.Network, envs)
	if err != nil {
		return played{}, err
	}
	o.Actor, o.Envs = actor, envs
	var r *evaluation.Result
	if err = actor.Load(w); err == nil {
		r, err = evaluation.Run(ctx, o)
	}
	if err = errors.Join(err, actor.Close()); err != nil {
		return played{}, err
	}
	return played{Return: r.Mean(), Std: r.Std(), Length: r.MeanLength(), Unfinished: r.Unfinished, Returns: r.Returns}, nil
}

package session

import (
	"context"
	"errors"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/evaluation"
)

// Played is how a policy did with its actions picked in one way.
type Played struct {
	Return     float64   `json:"mean_return"`
	Std        float64   `json:"std_return"`
	Length     float64   `json:"mean_length"`
	Unfinished int       `json:"unfinished"` // episodes that were given up
	Returns    []float64 `json:"-"`
}

// Evaluation is how a policy did greedily and with sampled actions, in the same episodes.
type Evaluation struct {
	Greedy, Sampled Played
	Deterministic   bool   // the greedy one is judged
	MaxSteps        uint64 // after which episodes were given up
}

// Judged returns the part that a run is judged by.
func (e *Evaluation) Judged() *Played {
	if e.Deterministic {
		return &e.Greedy
	}
	return &e.Sampled
}

// EvaluationOptions say what is played and judged.
type EvaluationOptions struct {
	evaluation.Options
	Deterministic bool
}

// EvaluationOf returns the evaluation that a pipeline asks for, after a training whose longest episode had so many env
// steps.
func EvaluationOf(g *graph.Graph, longest uint64) EvaluationOptions {
	e := g.Run.Evaluation
	most := max(10*longest, 10_000)
	if e.MaxSteps > 0 {
		most = uint64(e.MaxSteps)
	}
	return EvaluationOptions{Deterministic: e.Deterministic, Options: evaluation.Options{
		Episodes: e.Episodes, Seed: e.Seed, EpisodeLimit: episodeLimit(g), MaxSteps: most,
	}}
}

// Evaluate plays the episodes twice at the same time, greedily and with sampled actions.
func Evaluate(ctx context.Context, plugin env.Plugin, d *policy.Definition, w policy.Weights, o EvaluationOptions) (*Evaluation, error) {
	o.Plugin = plugin
	greedy, sampled := o.Options, o.Options
	greedy.Greedy = true
	e := &Evaluation{Deterministic: o.Deterministic, MaxSteps: o.MaxSteps}
	other := make(chan error, 1)
	go func() {
		var err error
		e.Sampled, err = playOnce(ctx, d, w, sampled)
		other <- err
	}()
	var err error
	e.Greedy, err = playOnce(ctx, d, w, greedy)
	if err = errors.Join(err, <-other); err != nil {
		return nil, err
	}
	return e, nil
}

// playOnce plays all episodes in one way, with environments and a policy of its own.
func playOnce(ctx context.Context, d *policy.Definition, w policy.Weights, o evaluation.Options) (Played, error) {
	const most = 32
	turns := (o.Episodes + most - 1) / most
	envs := (o.Episodes + turns - 1) / turns // so that few are idle in the last turn
	actor, err := policy.NewActor(d.Backend, &d.Network, envs)
	if err != nil {
		return Played{}, err
	}
	o.Actor, o.Envs = actor, envs
	var r *evaluation.Result
	if err = actor.Load(w); err == nil {
		r, err = evaluation.Run(ctx, o)
	}
	if err = errors.Join(err, actor.Close()); err != nil {
		return Played{}, err
	}
	return Played{Return: r.Mean(), Std: r.Std(), Length: r.MeanLength(), Unfinished: r.Unfinished, Returns: r.Returns}, nil
}

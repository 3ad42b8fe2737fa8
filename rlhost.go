package rlhost

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/evaluation"
	"github.com/rlhost/rlhost/sdk/component"
)

// Options describe a training.
type Options struct {
	File string   // pipeline to train; "" is pipeline.toml, unless Text has it
	Text string   // the pipeline itself; relative paths in it start at File's folder
	Set  []string // keys that override the pipeline's, such as "component.learner.epochs=4"

	Runs   string // folder that Resume and Evaluate look for runs in by name; "" is runs
	Policy string // leading policy; "" is the pipeline's

	Components map[string]func() component.Component // the program's own kinds, by their names in a pipeline
	Observe    func(session.Event)                   // gets the training's events, on its goroutine; may be nil
	Log        *slog.Logger                          // nil: slog.Default
}

// Result is how a training ended, and the results of its policies.
type Result = session.Result

// Evaluation is how a policy did greedily and with sampled actions, in the same episodes.
type Evaluation = players.Evaluation

// Train begins a new run and trains until a stop rule ends it, or ctx, which saves a checkpoint at the next dataset boundary first. A mistake
// in the pipeline is an error of type graph.Problems, with file, line and remedy of each. Where there is a result and an error, the error is
// of the run's folder.
func Train(ctx context.Context, o Options) (*Result, error) {
	s, err := o.training()
	if err != nil {
		return nil, err
	}
	return session.Train(ctx, s)
}

// Begin begins a new run as Train does, for a program that gives commands to its Run. The caller closes the session.
func Begin(ctx context.Context, o Options) (*session.Session, error) {
	s, err := o.training()
	if err != nil {
		return nil, err
	}
	return session.Begin(ctx, s)
}

// Resume continues a run from its newest checkpoint, with its own pipeline and the overrides of Options.Set; see Train. The run is a
// folder, a name such as "cartpole" (its newest run) or "cartpole/3", or "latest".
func Resume(ctx context.Context, run string, o Options) (*Result, error) {
	return with(&o, func(parts *graph.Parts) (*Result, error) {
		r, err := o.open(run)
		if err != nil {
			return nil, err
		}
		s, err := session.Resume(ctx, r, o.session(parts))
		if err != nil {
			return nil, err
		}
		result, err := s.Run(ctx)
		return result, errors.Join(err, s.Close())
	})
}

// Evaluate plays a run's newest checkpoint, in the environment of its training and as its pipeline says, for so many episodes. The
// same seed plays the same episodes.
func Evaluate(ctx context.Context, run string, episodes int, seed uint64, o Options) (*Evaluation, error) {
	return with(&o, func(parts *graph.Parts) (*Evaluation, error) {
		r, c, err := o.load(run)
		if err != nil {
			return nil, err
		}
		return session.EvaluateRun(ctx, r, c, session.RunEvaluation{Parts: parts, Policy: o.Policy, Episodes: episodes, Seed: seed, Log: o.Log})
	})
}

// Policy is a trained policy, seated in an environment that the program itself steps: Begin before the first observation of each episode,
// Act for each, Close at the end. It keeps the policy's memory of the episode, and belongs to one goroutine.
type Policy = evaluation.Seat

// Observation is the input of a Policy.
type Observation = evaluation.Observation

// Elements are the elements of one tensor, of an observation or an action.
type Elements = evaluation.Elements

// Load loads a policy of a run's newest checkpoint. Options.Policy says which. It takes observations as the pipeline's wrappers
// return them, and returns actions as the wrappers take them. The seed draws sampled actions, in a run that is judged by them.
func Load(ctx context.Context, run string, seed uint64, o Options) (*Policy, error) {
	return with(&o, func(parts *graph.Parts) (*Policy, error) {
		r, c, err := o.load(run)
		if err != nil {
			return nil, err
		}
		return session.Seat(ctx, r, c, session.RunEvaluation{Parts: parts, Policy: o.Policy, Seed: seed, Log: o.Log})
	})
}

// with calls fn with the parts that pipelines may name, and ends their runtimes afterwards.
func with[T any](o *Options, fn func(*graph.Parts) (*T, error)) (*T, error) {
	parts, engines := o.parts()
	result, err := fn(parts)
	return result, errors.Join(err, engines.Close())
}

func (o *Options) parts() (*graph.Parts, io.Closer) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	parts, engines := builtin.New(builtin.Options{Log: o.Log})
	for kind, make := range o.Components {
		parts.Kinds[kind] = author.Kind(make)
	}
	return parts, engines
}

// defaultFile is the pipeline that is read if none is named.
const defaultFile = "pipeline.toml"

// source returns the pipeline.
func (o *Options) source() (file string, src []byte, err error) {
	if file, src = cmp.Or(o.File, defaultFile), []byte(o.Text); o.Text == "" {
		src, err = files.Read(file, graph.MaxBytes)
	}
	return file, src, err
}

func (o *Options) parse(parts *graph.Parts) (*graph.Graph, error) {
	file, src, err := o.source()
	if err != nil {
		return nil, err
	}
	return graph.Parse(file, src, graph.ParseOptions{Parts: parts, Sets: o.Set})
}

// training describes a new training, which owns its parts.
func (o *Options) training() (session.Options, error) {
	parts, engines := o.parts()
	g, err := o.parse(parts)
	if err != nil {
		return session.Options{}, errors.Join(err, engines.Close())
	}
	s := o.session(parts)
	s.Graph, s.Engines = g, engines
	return s, nil
}

func (o *Options) session(parts *graph.Parts) session.Options {
	return session.Options{Parts: parts, Sets: o.Set, Policy: o.Policy, Log: o.Log, Observe: o.Observe}
}

func (o *Options) open(run string) (*runs.Run, error) { return runs.Open(cmp.Or(o.Runs, "runs"), run) }

// load reads the newest checkpoint of a run.
func (o *Options) load(run string) (*runs.Run, *runs.Checkpoint, error) {
	r, err := o.open(run)
	if err != nil {
		return nil, nil, err
	}
	c, err := r.Load(runs.Latest)
	return r, &c, err
}

package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// storedFor returns a session's pipeline.BuildOptions.Stored.
func storedFor(s *Session) func(g *graph.Graph, policy string, made component.Policy) (component.State, error) {
	return func(g *graph.Graph, name string, made component.Policy) (component.State, error) {
		f := players.Finder{Parts: s.o.Parts, Graph: g, Policy: g.Policy(name), Run: s.run, Before: s.before.Components,
			Learned: func(run *runs.Run, name string) (*graph.Graph, *graph.Policy, error) {
				return learnedIn(s.o.Parts, run, name)
			}}
		return f.State(made)
	}
}

// learnedIn returns the graph of another run, and its learned policy of a name, else its leading one.
func learnedIn(parts *graph.Parts, run *runs.Run, name string) (*graph.Graph, *graph.Policy, error) {
	its := *parts // what plays its environments is its own
	g, _, err := ownPipeline(run, nil, &its)
	if err != nil {
		return nil, nil, err
	}
	if p := g.Policy(name); p != nil && p.Role() == graph.Learned {
		return g, p, nil
	}
	p, _, err := learned(g, "")
	return g, p, err
}

// LadderOfRun rates the versions of a policy that a checkpoint of a run has, as EvaluateRun evaluates it. Actions are sampled unless
// Deterministic says otherwise: two policies that always do the same play the same game again and again.
func LadderOfRun(ctx context.Context, run *runs.Run, c *runs.Checkpoint, o RunEvaluation) (l *players.Ladder, err error) {
	g, _, err := ownPipeline(run, nil, o.Parts) // its warnings are about training
	if err != nil {
		return nil, err
	}
	trained, _, err := learned(g, o.Policy)
	if err != nil {
		return nil, err
	}
	longest, err := longestEpisode(g, o.Parts, c.Components)
	if err != nil {
		return nil, err
	}
	e := g.Env(trained.Env)
	plugin, err := o.Parts.Load(ctx, e.Name, e.Table, g.Dir)
	if err != nil {
		return nil, &Error{Kind: Plugin, Err: err}
	}
	defer func() { err = errors.Join(err, plugin.Close()) }()
	options := o.options(g, longest).Options
	options.Greedy = o.Deterministic != nil && *o.Deterministic
	r := players.Reader{Parts: o.Parts, Graph: g, States: c.Components, Spec: plugin.Spec()}
	l, err = r.Ladder(ctx, trained, plugin, options)
	var coded *table.Error
	if errors.As(err, &coded) && coded.Code == players.CodeLadder {
		return nil, &Error{Kind: Usage, Err: fmt.Errorf("error[%s]: %w\n  help: %s", coded.Code, err, coded.Help)}
	}
	return l, err
}

package session

import (
	"github.com/rlhost/rlhost/core/component"
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

// learnedIn returns the graph in a run's folder, and its learned policy of that name, else its leading one.
func learnedIn(parts *graph.Parts, run *runs.Run, name string) (*graph.Graph, *graph.Policy, error) {
	its := *parts // the plugin of its environments is its own
	g, err := ownPipeline(run, nil, &its)
	if err != nil {
		return nil, nil, err
	}
	if p := g.Policy(name); p != nil && p.Role() == graph.Learned {
		return g, p, nil
	}
	p, _, err := learned(g, "")
	return g, p, err
}

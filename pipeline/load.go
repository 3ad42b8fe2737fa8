package pipeline

import (
	"context"
	"errors"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/fit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
)

// Check loads every environment, makes every policy, checks whether they fit together and releases them. It reports as Build does:
// Problems for errors in the file, and warnings; and what it will take. Runs and files that policies take their weights from
// must be there. A resumed run does not need them: its own state has the weights.
func Check(ctx context.Context, g *graph.Graph, parts *graph.Parts) (f Forecast, warnings graph.Problems, err error) {
	var cache loading.Cache
	set, warnings, err := load(ctx, g, parts, &cache)
	if err == nil {
		err = checkStored(g)
	}
	loaded := fit.Of(g, set.Plugins(), set.Policies)
	f = Forecast{Memory: loaded.Forecast(), Disk: loaded.Disk, graph: g}
	return f, slices.Concat(warnings, g.Computable(parts, graph.CodeNoDevice), g.Placed(graph.CodeNoPlace)), errors.Join(err, cache.Close())
}

// Forecast is what a pipeline will take.
type Forecast struct {
	Memory []fit.Need                 // that is shared, the largest first
	Disk   func(r fit.Rates) fit.Disk // by how fast it writes

	graph *graph.Graph
}

// TooLarge returns a warning where the files take more than there is room for at the run's folder; 0: nobody knows.
func (f *Forecast) TooLarge(d fit.Disk, free int64) graph.Problems {
	return filesTooLarge(f.graph, d, free)
}

func filesTooLarge(g *graph.Graph, d fit.Disk, free int64) graph.Problems {
	c := &graph.Report{File: g.File}
	if free > 0 {
		d.Check(free, g.Run.Dir, c)
	}
	return c.Sorted()
}

// load loads what a graph names, and then checks whether all of it fits together.
func load(ctx context.Context, g *graph.Graph, parts *graph.Parts, cache *loading.Cache) (set *loading.Set, warnings graph.Problems, err error) {
	c := &graph.Report{File: g.File}
	if set, err = loading.Load(ctx, g, parts, cache, c); err != nil {
		return set, nil, err
	}
	limit, whose := loading.Memory(parts)
	loaded := fit.Of(g, set.Plugins(), set.Policies)
	loaded.Check(limit, whose, c)
	found := c.Sorted()
	for _, problem := range found {
		if problem.Severity == graph.Warning {
			warnings = append(warnings, problem)
		}
	}
	return set, warnings, found.Err()
}

// checkStored checks that the runs and files are there that policies have their weights from.
func checkStored(g *graph.Graph) error {
	c := &graph.Report{File: g.File}
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.From == "" {
			continue
		}
		if _, err := g.Stored(p.From); err != nil {
			c.Add("E012", p.Place("from"), graph.HelpStored, "policy %q: %v", p.Name, err)
		}
	}
	return c.Sorted().Err()
}

// nextAssembly loads what a graph needs beyond what runs, and checks it against that. Its members and wires are
// still missing.
func (p *Pipeline) nextAssembly(ctx context.Context, before *assembly, next *graph.Graph) (*assembly, error) {
	a := &assembly{graph: next, run: before.run}
	var err error
	if a.Set, _, err = load(ctx, next, p.options.Parts, &p.envCache); err != nil {
		return nil, err
	}
	if err := a.sameSpaces(before); err != nil {
		return nil, err
	}
	if err := a.sameNetworks(before); err != nil {
		return nil, err
	}
	if !before.run.Stop.Equal(&next.Run.Stop) {
		a.run = p.options.runOf(next)
	}
	return a, nil
}

// sameSpaces rejects environments whose spaces differ from their predecessors'.
func (a *assembly) sameSpaces(before *assembly) error {
	for name, v := range a.Envs {
		old := before.Envs[name]
		if old == nil || old == v {
			continue
		}
		if was, is := fit.Spaces(old.Plugin.Spec()), fit.Spaces(v.Plugin.Spec()); was != is {
			return spacesError(&component.SpacesError{Component: "env " + name, Reason: was + " differ from " + is,
				Running: old.Plugin.Spec(), Next: v.Plugin.Spec()})
		}
	}
	return nil
}

// sameNetworks reuses the policies that have not changed, and rejects those with another network.
func (a *assembly) sameNetworks(before *assembly) error {
	for name, made := range a.Policies {
		old, ok := before.Policies[name]
		if !ok {
			continue
		}
		if a.graph.Policy(name).Equal(before.graph.Policy(name)) {
			a.Policies[name] = old
			continue
		}
		if err := old.SameNetwork(made); err != nil {
			return &ChangeError{Code: control.CodeSpaces, Err: err,
				Reason: "policy \"" + name + "\" has another network than the running one: " + err.Error(), Help: "start a new run for it"}
		}
	}
	return nil
}

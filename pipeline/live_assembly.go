package pipeline

import (
	"context"
	"errors"
	"reflect"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// nextAssembly loads what a graph needs beyond what runs and holds it against that. Its members and wires are still
// missing.
func (p *Pipeline) nextAssembly(ctx context.Context, before *assembly, next *graph.Graph) (*assembly, error) {
	a := &assembly{graph: next, run: before.run}
	if before.run.Stop != next.Run.Stop {
		a.run = p.runOf(next)
	}
	var err error
	if a.loaded, err = load(ctx, next, p.options.Parts, &p.library); err != nil {
		return nil, err
	}
	if err := a.sameSpaces(before); err != nil {
		return nil, err
	}
	return a, a.sameNetworks(before, p.options.Parts)
}

// sameSpaces refuses environments of other spaces than those whose place they take.
func (a *assembly) sameSpaces(before *assembly) error {
	for name, v := range a.plugins {
		old := before.plugins[name]
		if old == nil || old == v {
			continue
		}
		if was, is := spaces(old.plugin.Spec()), spaces(v.plugin.Spec()); was != is {
			return spacesError(&component.SpacesError{Component: "env " + name, Reason: was + " differ from " + is,
				Running: old.plugin.Spec(), Next: v.plugin.Spec()})
		}
	}
	return nil
}

// sameNetworks takes over the policies that are what they were, and refuses those of another network.
func (a *assembly) sameNetworks(before *assembly, parts *graph.Parts) error {
	for name, made := range a.policies {
		old, ok := before.policies[name]
		if !ok {
			continue
		}
		if a.graph.Policy(name).Equal(before.graph.Policy(name)) {
			a.policies[name] = old
			continue
		}
		if err := sameNetwork(parts, old, made); err != nil {
			return &ChangeError{Code: control.CodeSpaces, Err: err,
				Reason: "policy \"" + name + "\" has another network than the running one: " + err.Error(), Help: "start a new run for it"}
		}
	}
	return nil
}

func sameNetwork(parts *graph.Parts, old, made any) error {
	switch {
	case parts.SameNetwork != nil:
		return parts.SameNetwork(old, made)
	case reflect.DeepEqual(old, made):
		return nil
	}
	return errors.New("this program cannot compare policies")
}

package graph

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// Maker returns what makes a component where its runtime runs it.
func (g *Graph) Maker(of *Component, parts *Parts) (Maker, error) {
	switch {
	case of.maker != nil:
		return of.maker, nil
	case of.Runtime != RuntimeProcess && parts.Kinds[of.Kind] != nil:
		return BuiltinMaker(parts.Kinds[of.Kind]), nil
	case of.Runtime == RuntimeProcess && parts.Plugin == nil:
		return nil, errors.New("this program runs no native plugins")
	case of.Runtime == RuntimeProcess:
		kinds, err := parts.Plugin(DefaultPlugin(), g.Dir)
		if err != nil || kinds[of.Kind] != nil {
			return kinds[of.Kind], err
		}
	}
	return nil, fmt.Errorf("this program has no kind %q", of.Kind)
}

// SourceOf returns where an environment comes from, for components that run in another process.
func (g *Graph) SourceOf(t *EnvTable, parts *Parts) component.EnvSource {
	use, _ := t.Locate(g.Dir, parts.Builtins)
	return component.EnvSource{
		Use: use, Args: t.Args, Grants: t.Grants,
		Memory: t.Limits.Memory, Step: t.Limits.Step, Init: t.Limits.Init,
		Compile: t.Limits.Compile, CompileMemory: t.Limits.CompileMemory,
	}
}

// Decode decodes the component's own keys: what component.Component.Configure is given.
func (x *Component) Decode(into any) error {
	return decoder(x.table, "component."+x.Name, ownKeys...)(into)
}

// Decode decodes the policy's keys but env.
func (p *Policy) Decode(into any) error { return decoder(p.table, "policy."+p.Name, "env")(into) }

// Plain returns the policy's keys but env as plain values, to be decoded elsewhere.
func (p *Policy) Plain() map[string]any { return table.Map(p.table, "env") }

package graph

import (
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
)

// SourceOf returns where an environment comes from, for components that run in another process.
func (g *Graph) SourceOf(t *EnvTable, parts *Parts) env.Source {
	source := t.Source
	source.Use, _ = t.Locate(g.Dir, parts.Builtins)
	return source
}

// Decode decodes the component's own keys: what component.Component.Configure is given.
func (x *Component) Decode(into any) error {
	return decoder(x.table, "component."+x.Name, ownKeys...)(into)
}

// Decode decodes the policy's keys but env.
func (p *Policy) Decode(into any) error { return decoder(p.table, "policy."+p.Name, "env")(into) }

// Plain returns the policy's keys but env as plain values, to be decoded elsewhere.
func (p *Policy) Plain() map[string]any { return table.Map(p.table, "env") }

package fit

import (
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Loaded is a graph with the environments and policies that were made for it, by name. What could not be made is missing, and nothing is
// said of it. It is immutable.
type Loaded struct {
	graph    *graph.Graph
	plugins  map[string]env.Plugin
	policies map[string]component.Policy
	parts    []*part // in the order of the components
}

// Of returns a graph with what was loaded for it.
func Of(g *graph.Graph, plugins map[string]env.Plugin, policies map[string]component.Policy) *Loaded {
	l := &Loaded{graph: g, plugins: plugins, policies: policies}
	for i := range g.Components {
		l.parts = append(l.parts, l.partOf(&g.Components[i]))
	}
	return l
}

// Check adds to a report what does not fit: policies to environments, columns to components, and all of it into memory. limit is how many
// bytes there are, 0 where nobody knows, and whose says who says so.
func (l *Loaded) Check(limit int64, whose string, c *graph.Report) {
	l.checkStacks(c)
	l.checkSpaces(c)
	l.checkAgents(c)
	l.checkPast(c)
	l.checkChunks(c)
	l.checkBurnIn(c)
	l.checkDoubts(c)
	l.checkEnds(c)
	l.checkWhole(c)
	l.checkLimits(c)
	l.checkVideos(c)
	l.checkBatches(c)
	l.checkMapped(c)
	l.checkColumns(c)
	l.checkMemory(limit, whose, c)
	l.checkArenas(c)
}

// part is a component with what was loaded for it.
type part struct {
	*graph.Component
	plugin env.Plugin         // of its environments; nil: it runs none
	spec   hostabi.EnvSpec    // of plugin
	policy component.Policy   // its own, or nil
	keeps  []*graph.Policy    // of its blocks: they keep what these need of earlier rows
	schema *trajectory.Schema // of its blocks; nil: it makes none, or they cannot be laid out, which E042, E052 and E054 say

	publishes string // the signal that carries versions of its policy, or empty
	follows   bool   // such versions come to it
	arenas    int    // of one instance
}

func (l *Loaded) partOf(of *graph.Component) *part {
	x := &part{Component: of, plugin: l.plugins[of.Env], policy: l.policies[of.Policy]}
	for _, port := range of.Manifest.Signals {
		payload := component.PayloadOf(port.Payload)
		if payload.Publishes && x.publishes == "" {
			x.publishes = port.Name
		}
		if payload.Block {
			x.arenas++
		}
	}
	x.follows = slices.ContainsFunc(of.Manifest.Slots, func(p component.Port) bool { return component.PayloadOf(p.Payload).Publishes })
	for i := range l.graph.Policies {
		if p := &l.graph.Policies[i]; l.policies[p.Name] != nil && of.Keeps(p) {
			x.keeps = append(x.keeps, p)
		}
	}
	if x.plugin != nil {
		x.spec = x.plugin.Spec()
	}
	if !x.makesBlocks() {
		return x
	}
	shape := x.shape()
	shape.Policies, shape.Granted, shape.Versions = of.Flow.ShapePolicies(), strings.Join(l.graph.Written(of.Name), " "), l.draws(&of.Flow)
	for _, p := range x.keeps {
		shape.Memory = shape.Memory.And(l.policies[p.Name].Memory())
	}
	x.schema, _ = trajectory.NewSchema(x.spec, shape)
	return x
}

// part returns the part of a component.
func (l *Loaded) part(name string) *part {
	return l.parts[slices.IndexFunc(l.parts, func(x *part) bool { return x.Name == name })]
}

// runs reports whether the component runs environments.
func (x *part) runs() bool { return x.plugin != nil && x.Flow.Envs > 0 }

// makesBlocks reports whether the component's environments step into blocks, with at least one in each split.
func (x *part) makesBlocks() bool {
	f := &x.Flow
	return x.plugin != nil && f.BlockRows != 0 && f.Splits > 0 && f.Envs >= f.Splits
}

// shape is that of the part of a block that a guest sees.
func (x *part) shape() trajectory.Shape {
	envs := x.Flow.Envs / x.Flow.Splits
	return trajectory.Shape{Steps: x.Flow.BlockRows / envs, Envs: envs, Shaped: env.Shapes(x.plugin)}
}

// draws reports whether one of several policies that act is a pool.
func (l *Loaded) draws(f *component.Flow) bool {
	names := f.Acting()
	return len(names) > 1 && slices.ContainsFunc(names, func(name string) bool {
		p := l.graph.Policy(name)
		return p != nil && p.Role() == graph.Pool
	})
}

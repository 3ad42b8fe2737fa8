package fit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// checkStacks checks that a policy says nothing else than the wrapper of its environment that sets its frames.
func (l *Loaded) checkStacks(c *graph.Report) {
	for i := range l.graph.Policies {
		p := &l.graph.Policies[i]
		e := l.graph.Env(p.Env)
		if p.Of != "" || e == nil || len(e.Table.Wrap) == 0 {
			continue
		}
		last := len(e.Table.Wrap) - 1
		frames, ok := e.Table.Wrap[last][graph.KeyStack]
		if !ok {
			continue
		}
		table := p.Plain()
		differs := func(key string, n any) {
			if n != nil && n != frames {
				c.Add("E022", p.Place(key), "leave one of the two out", "policy %q: `%s` is %v, and the wrapper of env %q says %v frames (%v)",
					p.Name, key, n, e.Name, frames, e.Place(fmt.Sprintf("wrap[%d].%s", last, graph.KeyStack)))
			}
		}
		differs(graph.KeyStack, table[graph.KeyStack])
		encoders, _ := table["encoder"].(map[string]any)
		for _, pattern := range slices.Sorted(maps.Keys(encoders)) {
			if encoder, ok := encoders[pattern].(map[string]any); ok {
				differs("encoder."+pattern+".stack", encoder["stack"])
			}
		}
	}
}

// checkSpaces checks that each policy was made for the spaces of the environments whose data reaches the
// components that use it.
func (l *Loaded) checkSpaces(c *graph.Report) {
	for _, x := range l.parts {
		if x.plugin == nil {
			continue
		}
		for _, name := range l.graph.PoliciesBehind(x.Component) {
			p := l.graph.Policy(name)
			made := l.plugins[p.Env]
			if made == nil || p.Of != "" {
				continue
			}
			if want, got := Spaces(made.Spec()), Spaces(x.spec); want != got {
				c.Add("E041", p.At, "declare a policy for it: [policy.NAME] with env = \""+x.Env+"\"",
					"policy %q was made for %s but env %q gives %s", name, want, x.Env, got)
			}
		}
	}
}

// Spaces tells the spaces that a policy depends on.
func Spaces(s hostabi.EnvSpec) string {
	text := s.Spaces(hostabi.RoleObservation) + " observations and " + s.Spaces(hostabi.RoleAction) + " actions"
	if s.HasMask() {
		text += " with a mask"
	}
	return text
}

// checkAgents checks that each agent has one policy.
func (l *Loaded) checkAgents(c *graph.Report) {
	for _, x := range l.parts {
		if !x.runs() {
			continue
		}
		if len(x.Flow.Acting()) == 0 && (len(x.spec.Groups) < 2 || len(l.graph.PoliciesBehind(x.Component)) == 0) {
			continue // one policy plays all agents, or none does
		}
		_, err := x.Flow.PolicyOfAgents(&x.spec)
		for _, e := range table.All(err) {
			x.Report(c, e)
		}
	}
}

// checkPast checks that policies that read earlier rows play agents that always act: blocks keep rows of environments, not of turns.
func (l *Loaded) checkPast(c *graph.Report) {
	for _, x := range l.parts {
		if _, turns := x.spec.Tensor(hostabi.RoleActive); !turns || !x.runs() {
			continue
		}
		for _, p := range x.keeps {
			if p.Of == "" && l.policies[p.Name].Memory().Past > 0 {
				c.Add("E041", placeOfPast(p), "leave stacked frames, last_action and last_reward out; a core remembers what an agent saw in its own turns: net = { core = { kind = \"gru\" } }",
					"policy %q reads what was before a row, and the agents of env %q do not act in all rows", p.Name, x.Env)
			}
		}
	}
}

// placeOfPast is where a policy says that it reads earlier rows, which are three keys.
func placeOfPast(p *graph.Policy) graph.Span {
	for _, key := range []string{graph.KeyStack, "encoder", "inputs"} {
		if at := p.Place(key); at != p.At {
			return at
		}
	}
	return p.At
}

// checkChunks checks that trajectories are whole chunks of the policies that are learned in such.
func (l *Loaded) checkChunks(c *graph.Report) {
	for _, x := range l.parts {
		if x.Flow.BlockRows == 0 || x.Flow.Envs < x.Flow.Splits {
			continue
		}
		horizon := x.Flow.BlockRows / (x.Flow.Envs / x.Flow.Splits)
		for _, p := range x.keeps {
			chunk := l.policies[p.Name].Memory().Chunk
			if p.Of != "" || chunk == 0 || horizon%chunk == 0 {
				continue
			}
			c.Add("E052", p.Place("net"), fmt.Sprintf("use horizon = %d in [component.%s], or a net.chunk that divides %d", (horizon+chunk-1)/chunk*chunk, x.Name, horizon),
				"policy %q is learned in chunks of %d rows, and trajectories of component %q have %d", p.Name, chunk, x.Name, horizon)
		}
	}
}

// checkBurnIn checks that chunks have rows to learn from behind burn-in.
func (l *Loaded) checkBurnIn(c *graph.Report) {
	for _, x := range l.parts {
		if x.policy == nil {
			continue
		}
		if e := component.CheckBurnIn(x.BurnIn, x.Policy, x.policy.Memory().Chunk); e != nil {
			x.Report(c, e)
		}
	}
}

// checkDoubts warns of policies that are learned and will hardly be.
func (l *Loaded) checkDoubts(c *graph.Report) {
	for i := range l.graph.Policies {
		p := &l.graph.Policies[i]
		made, ok := l.policies[p.Name].(component.Doubtful)
		if !ok || p.Of != "" {
			continue
		}
		if d := made.Doubt(); d != nil {
			c.Add("W114", p.Place(d.Key), d.Help, "policy %q %s", p.Name, d.Reason)
		}
	}
}

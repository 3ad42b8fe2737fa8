package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// loaded are the plugins and policies of a graph. They are not changed once load has returned.
type loaded struct {
	library  *library // what the plugins are from
	plugins  map[string]*volume
	policies map[string]any
	warnings Problems
}

// CheckPlugins loads every environment, makes every policy, holds them against each other and lets go of them
// again. It reports what Build would: Problems where the file is to blame, and as warnings what Pipeline.Warnings would.
func CheckPlugins(ctx context.Context, g *Graph, parts *Parts) (warnings Problems, err error) {
	var lib library
	l, err := load(ctx, g, parts, &lib)
	return l.warnings, errors.Join(err, lib.close())
}

// Warnings returns what is not wrong with the environments that were loaded first, but perhaps not what was meant.
func (p *Pipeline) Warnings() Problems { return p.warnings }

// load loads the environments that the library does not have and makes the policies. What it has loaded is in the
// library also after an error.
func load(ctx context.Context, g *Graph, parts *Parts, lib *library) (*loaded, error) {
	l := &loaded{library: lib, plugins: map[string]*volume{}, policies: map[string]any{}}
	c := &problems{file: g.File}
	for i := range g.Envs {
		e := &g.Envs[i]
		if err := l.loadEnv(ctx, g, e, parts); err != nil {
			if ctx.Err() != nil {
				return l, context.Cause(ctx)
			}
			c.loadProblem(e, err)
			continue
		}
		if hash := l.plugins[e.Name].plugin.Hash(); e.Table.SHA256 != "" && !strings.EqualFold(hash, e.Table.SHA256) {
			c.add("E051", e.sha, "take the new hash if the change is wanted", "%s has changed: its SHA-256 is %s", e.Table.Use, hash)
		}
	}
	for i := range g.Policies {
		l.makePolicy(g, &g.Policies[i], parts, c)
	}
	l.checkSpaces(g, c)
	l.checkMemory(g, c)
	l.checkEnds(g, c)
	found := c.sorted()
	for _, problem := range found {
		if problem.Severity == Warning {
			l.warnings = append(l.warnings, problem)
		}
	}
	return l, found.Err()
}

// checkEnds warns of environments whose episodes nothing ends but themselves.
func (l *loaded) checkEnds(g *Graph, c *problems) {
	for i := range g.Components {
		x := &g.Components[i]
		runs := l.plugins[x.env]
		if runs == nil || x.Flow.Envs == 0 || x.Flow.EpisodeLimit > 0 || runs.plugin.Spec().EpisodeLimit > 0 {
			continue
		}
		c.add("W104", g.Env(x.env).use, fmt.Sprintf("set episode_limit in [component.%s], unless every episode ends by itself", x.Name),
			"env %q has no limit to its episodes, and component %q sets none", x.env, x.Name)
	}
}

func (l *loaded) loadEnv(ctx context.Context, g *Graph, e *Env, parts *Parts) error {
	if parts.Load == nil {
		return errors.New("this program loads no environments")
	}
	digest := e.Table.digest(g.Dir, parts.Builtins)
	if v := l.library.find(e.Name, &e.Table, digest); v != nil {
		l.plugins[e.Name] = v
		return nil
	}
	p, err := parts.Load(ctx, e.Name, e.Table, g.Dir)
	if err != nil {
		return err
	}
	v := &volume{env: e.Name, table: e.Table, digest: digest, plugin: p}
	l.library.add(v)
	l.plugins[e.Name] = v
	return nil
}

// loadProblem says why an environment could not be loaded.
func (c *problems) loadProblem(e *Env, err error) {
	var known *LoadError
	switch {
	case errors.As(err, &known):
		c.add(known.Code, e.use, known.Help, "env %q: %s", e.Name, known.Reason)
	case errors.Is(err, fs.ErrNotExist):
		c.add("E012", e.use, "build it first, or correct the path", "env %q: %s: no such file", e.Name, e.Table.Use)
	default:
		c.add("E012", e.use, "", "env %q: %v", e.Name, err)
	}
}

// makePolicy makes one policy for its environment, if that has been loaded.
func (l *loaded) makePolicy(g *Graph, p *Policy, parts *Parts, c *problems) {
	loaded := l.plugins[p.Env]
	if loaded == nil {
		return
	}
	if parts.Policy == nil {
		c.add("E041", p.at, "", "policy %q: this program makes no policies", p.Name)
		return
	}
	spec := loaded.plugin.Spec()
	made, err := parts.Policy(decoder(p.table, "policy."+p.Name, "env"), &spec)
	if err != nil {
		c.add("E041", p.at, "", "policy %q cannot serve env %q: %v", p.Name, p.Env, err)
		return
	}
	l.policies[p.Name] = made
}

// checkSpaces checks that each policy was made for spaces like those of the environments whose data reaches the
// components that use it.
func (l *loaded) checkSpaces(g *Graph, c *problems) {
	for i := range g.Components {
		from := &g.Components[i]
		gives := l.plugins[from.env]
		if gives == nil {
			continue
		}
		for _, name := range g.policiesBehind(from) {
			p := g.Policy(name)
			made := l.plugins[p.Env]
			if made == nil {
				continue
			}
			if want, got := spaces(made.plugin.Spec()), spaces(gives.plugin.Spec()); want != got {
				c.add("E041", p.at, "declare a policy for it: [policy.NAME] with env = \""+from.env+"\"",
					"policy %q was made for %s but env %q gives %s", name, want, from.env, got)
			}
		}
	}
}

// checkMemory checks that the environments of each component have memory for the blocks that it steps into. Those of a
// split are mapped into one instance.
func (l *loaded) checkMemory(g *Graph, c *problems) {
	for i := range g.Components {
		x := &g.Components[i]
		from, f := l.plugins[x.env], x.Flow
		if from == nil || f.BlockRows == 0 || f.Splits == 0 || f.Envs < f.Splits {
			continue
		}
		blocks, envs := 1, f.Envs/f.Splits
		if !g.Synchronous {
			blocks = f.Blocks / f.Splits
		}
		at := span{}
		if e := g.Env(x.env); e != nil {
			at = e.use
		}
		schema, err := trajectory.NewSchema(from.plugin.Spec(), trajectory.Shape{Steps: f.BlockRows / envs, Envs: envs})
		if err != nil {
			c.add("E042", at, fmt.Sprintf("lower envs or horizon of %q, or raise its splits", x.Name), "env %q: %v", x.env, err)
			continue
		}
		var short *env.MemoryError
		if errors.As(env.CheckMemory(from.plugin, blocks, schema), &short) {
			c.add("E042", at, fmt.Sprintf("raise it in [env.%s]: limits = { memory = %q }; or lower envs, horizon or blocks of %q, or raise its splits",
				x.env, short.Limit(), x.Name), "env %q: %v", x.env, short)
		}
	}
}

// policiesBehind names the policies of the components that a component's messages reach first.
func (g *Graph) policiesBehind(from *Component) []string {
	var found []string
	seen := map[string]bool{from.Name: true}
	for queue := []string{from.Name}; len(queue) > 0; queue = queue[1:] {
		for _, w := range g.Wires {
			if w.From != queue[0] || seen[w.To] {
				continue
			}
			seen[w.To] = true
			if to := g.Component(w.To); to.policy != "" {
				found = append(found, to.policy)
			} else {
				queue = append(queue, w.To)
			}
		}
	}
	return unique(found)
}

// spaces tells the spaces that a policy depends on.
func spaces(s hostabi.EnvSpec) string {
	text := boxOf(s, hostabi.RoleObservation) + " observations and "
	if n := s.Actions(); n > 0 {
		text += fmt.Sprintf("Discrete(%d) actions", n)
	} else {
		text += boxOf(s, hostabi.RoleAction) + " actions"
	}
	if s.HasMask() {
		text += " with a mask"
	}
	return text
}

func boxOf(s hostabi.EnvSpec, role hostabi.Role) string {
	d, _ := s.Tensor(role)
	return strings.ReplaceAll(fmt.Sprintf("Box%v", d.Shape[:min(int(d.Rank), len(d.Shape))]), " ", ",")
}

package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// What a control.Change is about.
const (
	changeEnv       = "env"
	changeComponent = "component"
)

// partsOf tells what the changes mean to each component.
func (j *Commands) partsOf(t *pipeline.Transition, changes []control.Change) []part {
	before, next := j.o.Pipeline.Graph(), t.Graph()
	var parts []part
	seen := map[string]bool{}
	for _, c := range changes {
		switch c.What {
		case changeEnv:
			for _, name := range runnersOf(next, c.Name) {
				if !seen[name] {
					seen[name] = true
					parts = append(parts, j.envPart(t, before, name, c.Name))
				}
			}
		case changeComponent:
			name := componentOf(c.Name)
			back := backToComponent(before, name)
			if seen[name] || slices.Equal(back, backToComponent(next, name)) {
				continue // made anew for what others need of it: it is what it was
			}
			seen[name] = true
			parts = append(parts, part{component: name, old: componentVersion(before, name), new: componentVersion(next, name), back: back})
		}
	}
	for i := range next.Envs { // what a change of text alone would not tell
		env := next.Envs[i].Name
		for _, name := range runnersOf(next, env) {
			if t.Plugin(env) == nil {
				continue
			}
			at := slices.IndexFunc(parts, func(p part) bool { return p.component == name })
			if at < 0 {
				parts = append(parts, j.envPart(t, before, name, env))
			} else if parts[at].env == "" { // made anew, with other environments: those are what is checked and tried
				parts[at] = j.envPart(t, before, name, env).madeAnew(before, parts[at].back)
			}
		}
	}
	return parts
}

// withVersions adds changes for the environments that are of another version now, where the list lacks them.
func withVersions(list []control.Change, parts []part) []control.Change {
	for _, p := range parts {
		known := slices.ContainsFunc(list, func(c control.Change) bool { return c.What == changeEnv && c.Name == p.env })
		if p.env == "" || known {
			continue
		}
		text := "its table has changed"
		if p.old != p.new {
			text = fmt.Sprintf("%s (%.8s) → %s (%.8s)", p.old.File, p.old.Hash, p.new.File, p.new.Hash)
		}
		list = append(list, control.Change{What: changeEnv, Name: p.env, Text: text})
	}
	return list
}

func (j *Commands) envPart(t *pipeline.Transition, before *graph.Graph, component, env string) part {
	p := part{component: component, env: env, old: j.runningEnv(env), back: backTo(before, "env", env)}
	if e := before.Env(env); e != nil {
		if _, isModule := j.moduleOf(before, e); isModule {
			p.back = j.backToStored(p.back, env, p.old.Hash)
		}
	}
	hash := p.old.Hash
	if plugin := t.Plugin(env); plugin != nil {
		hash = plugin.Hash()
	}
	p.new = j.envVersion(t.Graph(), env, hash)
	return p
}

// madeAnew is the part of a component that is replaced, with what brings it back too.
func (p part) madeAnew(before *graph.Graph, back []string) part {
	if before.Env(p.env) == nil { // what there was not needs no way back
		p.back = nil
	}
	p.back = append(p.back, back...)
	return p
}

// backToStored makes overrides name the copy of a module, if there is one: its file may not be what it was.
func (j *Commands) backToStored(back []string, env, hash string) []string {
	m, err := j.o.Run.Stored(hash)
	if err != nil {
		return back
	}
	key := "env." + env + ".use"
	back = slices.DeleteFunc(back, func(set string) bool { return strings.HasPrefix(set, key+" = ") })
	return append(back, key+" = "+strconv.Quote(m.Path))
}

// runnersOf names the components of a graph that run an environment.
func runnersOf(g *graph.Graph, env string) []string {
	var names []string
	for i := range g.Components {
		if g.Components[i].Env == env {
			names = append(names, g.Components[i].Name)
		}
	}
	return names
}

// componentOf is the component of an instance: rollout of rollout[2].
func componentOf(instance string) string {
	name, _, _ := strings.Cut(instance, "[")
	return name
}

// backToComponent returns overrides that make a component of another graph what it is in this one, with its plugin and
// its policy.
func backToComponent(g *graph.Graph, name string) []string {
	sets := backTo(g, "component", name)
	if c := g.Component(name); c != nil && c.Plugin != "" {
		sets = append(sets, backTo(g, "plugin", c.Plugin)...)
	}
	for _, line := range tableLines(g.Expanded(), "component."+name) {
		if policy, ok := strings.CutPrefix(line, "policy = "); ok {
			sets = append(sets, backTo(g, "policy", strings.Trim(policy, `"`))...)
		}
	}
	return sets
}

// mayChange refuses changes of what the pipeline says may never be swapped.
func (j *Commands) mayChange(changes []control.Change) error {
	g := j.o.Pipeline.Graph()
	for _, c := range changes {
		var names []string
		switch c.What {
		case changeEnv:
			if e := g.Env(c.Name); e != nil && e.Swap == graph.SwapNever {
				return forbidden("env", c.Name)
			}
			names = runnersOf(g, c.Name)
		case changeComponent:
			names = []string{componentOf(c.Name)}
		}
		i := slices.IndexFunc(names, func(name string) bool {
			x := g.Component(name)
			return x != nil && x.Swap == graph.SwapNever
		})
		if i >= 0 {
			return forbidden("component", names[i])
		}
	}
	return nil
}

func forbidden(section, name string) error {
	e := control.Errorf(control.CodeForbidden, `%s %q is not to be swapped: the pipeline has swap = "never" in [%s.%s]`, section, name, section, name)
	e.Help = "stop the run, change that, and go on with it: rlhost train --resume"
	return e
}

package session

import (
	"slices"

	"github.com/rlhost/rlhost/core/control"
	envs "github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/overrides"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// partsOf returns the meaning of the changes for each component.
func (h *history) partsOf(t *pipeline.Transition, changes []control.Change) []part {
	before, next := h.live.Pipeline.Graph(), t.Graph()
	var parts []part
	seen := map[string]bool{}
	for _, c := range changes {
		switch c.What {
		case changeEnv:
			for _, name := range runnersOf(next, c.Name) {
				if !seen[name] {
					seen[name] = true
					parts = append(parts, h.envPart(t, before, name, c.Name))
				}
			}
		case changeComponent:
			name := componentOf(c.Name)
			back := overrides.BackComponent(before, name)
			if seen[name] || slices.Equal(back, overrides.BackComponent(next, name)) {
				continue // replaced because others need something of it: it has not changed
			}
			seen[name] = true
			parts = append(parts, part{component: name, old: h.componentVersion(before, name), new: h.componentVersion(next, name), back: back})
		}
	}
	for i := range next.Envs { // changes that the text alone does not show
		env := next.Envs[i].Name
		for _, name := range runnersOf(next, env) {
			if t.Plugin(env) == nil {
				continue
			}
			at := slices.IndexFunc(parts, func(p part) bool { return p.component == name })
			if at < 0 {
				parts = append(parts, h.envPart(t, before, name, env))
			} else if parts[at].env == "" { // replaced, with other environments: these are checked and tried
				parts[at] = h.envPart(t, before, name, env).madeAnew(before, parts[at].back)
			}
		}
	}
	var undo []runs.Table
	for _, s := range before.Undo(next) {
		undo = append(undo, runs.Table(s))
	}
	for i := range parts {
		parts[i].undo = undo
	}
	return parts
}

func (h *history) envPart(t *pipeline.Transition, before *graph.Graph, component, env string) part {
	p := part{component: component, env: env, old: h.runningEnv(env), back: overrides.Back(before, "env", env)}
	if e := before.Env(env); e != nil {
		if _, isModule := h.live.moduleOf(before, e); isModule {
			p.back = h.backToStored(p.back, env, p.old.Hash)
		}
		if _, digest := h.runningData(e); digest != "" {
			if d, err := h.live.Run.StoredData(digest); err == nil {
				p.back = overrides.Replaced(p.back, "env."+env+".data", graph.Literal(d.Path))
			}
		}
		if len(e.Table.Wrap) > 0 {
			p.back = overrides.Replaced(p.back, "env."+env+".wrap", envs.WrapText(h.storedWrap(e, true)))
		}
		p.wraps = h.wrapChanges(e, t.Graph().Env(env), t.Graph().Dir, t.Plugin(env))
	}
	hash := p.old.Hash
	if plugin := t.Plugin(env); plugin != nil {
		hash = plugin.Hash()
	}
	p.new = h.envVersion(t.Graph(), env, hash)
	return p
}

// wrapChanges returns which wrappers of an environment differ from the next version's, whose folder and plugin are given. Where the list has
// another length places do not say which was which.
func (h *history) wrapChanges(before, next *graph.Env, dir string, plugin envs.Plugin) (list []runs.Wrap) {
	if plugin == nil || len(before.Table.Wrap) != len(next.Table.Wrap) {
		return nil
	}
	hashes := next.Table.WrapHashes(plugin)
	after := next.Table.WrapUsing(func(place int, use string) string {
		if m, err := h.live.Run.Stored(hashes[place]); err == nil {
			return m.Path
		}
		return use
	})
	after = (&envs.Source{Wrap: after}).WrapReading(func(_ int, data string) string { return h.copyOfData(files.In(dir, data)) })
	for place, was := range h.storedWrap(before, true) {
		if w := (runs.Wrap{Place: place, Old: was.Text(), New: after[place].Text()}); w.Old != w.New {
			list = append(list, w)
		}
	}
	return list
}

// backToStored makes overrides name the copy of a module, if there is one: its file may have changed.
func (h *history) backToStored(back []string, env, hash string) []string {
	m, err := h.live.Run.Stored(hash)
	if err != nil {
		return back
	}
	return overrides.Replaced(back, "env."+env+".use", graph.Literal(m.Path))
}

// storedWrap returns the wrappers of a running environment, with modules and folders of data named by their copies: all, or only what
// has changed since it was loaded.
func (h *history) storedWrap(e *graph.Env, all bool) []envs.Wrapper {
	dir, hashes := h.live.Pipeline.Graph().Dir, h.runningWrap(e)
	list := e.Table.WrapUsing(func(place int, use string) string {
		hash := hashes[place]
		if now, err := files.SHA256(files.In(dir, use)); !all && err == nil && now == hash {
			return use
		}
		if m, err := h.live.Run.Stored(hash); err == nil {
			return m.Path
		}
		return use
	})
	return (&envs.Source{Wrap: list}).WrapReading(func(_ int, data string) string {
		path := files.In(dir, data)
		if now, _ := h.loadedData(path); !all && now == path {
			return data
		}
		return h.copyOfData(path)
	})
}

// runningWrap returns the SHA-256 of the modules around an environment that runs, by their places.
func (h *history) runningWrap(e *graph.Env) map[int]string {
	plugin, err := h.live.Pipeline.Env(e.Name)
	if err != nil {
		return nil
	}
	return e.Table.WrapHashes(plugin)
}

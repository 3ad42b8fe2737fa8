package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// What a control.Change is about.
const (
	changeEnv       = "env"
	changeComponent = "component"
)

// part is what a change means to one component.
type part struct {
	component string
	env       string // whose version changed; empty if it is the component's own
	old, new  control.Version
	back      []string
	undo      []runs.Table // what has come and gone with it; nil where back is all
	checked   string
	canary    *control.Canary
}

// madeAnew is the part of a component that is replaced, with what brings it back too.
func (p part) madeAnew(before *graph.Graph, back []string) part {
	if before.Env(p.env) == nil { // what there was not needs no way back
		p.back = nil
	}
	p.back = append(p.back, back...)
	return p
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

// programPath is where the program of a plugin lies; empty if that is looked up elsewhere.
func programPath(g *graph.Graph, p *graph.Plugin) string {
	path := p.Table.Path
	switch {
	case filepath.IsAbs(path):
		return path
	case filepath.Base(path) != path:
		return filepath.Join(g.Dir, path)
	}
	return ""
}

// envOf returns the environment that a component of a graph runs, or "".
func envOf(g *graph.Graph, c *graph.Component) string {
	if c == nil {
		return ""
	}
	return c.Env
}

// keys that a table of a graph's text may lack, with what stands for their absence.
var absent = map[string][]string{
	"plugin":    {`sha256 = ""`, "interpreter = []", "args = []", "env = []"},
	"env":       {`sha256 = ""`, `isolation = "host"`, "workers = 1", "wrap = []", "args = {}", "limits = {}", "grants = []"},
	"component": {`plugin = ""`, `runtime = ""`, `use = ""`, `grants = ""`, `limits = ""`, `sha256 = ""`, `max_restarts = ""`},
}

// backTo returns overrides that give a table of another graph what it has in this one: section is env or component.
func backTo(g *graph.Graph, section, name string) []string {
	var sets []string
	prefix := section + "." + name + "."
	seen := map[string]bool{}
	for _, line := range tableLines(g.Expanded(), section+"."+name) {
		key, _, _ := strings.Cut(line, " = ")
		seen[key] = true
		if key == "swap" || section == "component" && slices.Contains([]string{"kind", "count", "loop"}, key) {
			continue
		}
		sets = append(sets, prefix+line)
	}
	for _, line := range absent[section] {
		if key, _, _ := strings.Cut(line, " = "); !seen[key] {
			sets = append(sets, prefix+line)
		}
	}
	return sets
}

// needed leaves out of such overrides those that stand for the absence of a key which a graph does not have either.
func needed(g *graph.Graph, back []string) []string {
	text := g.Expanded()
	return slices.DeleteFunc(slices.Clone(back), func(set string) bool {
		for section, lines := range absent {
			rest, ok := strings.CutPrefix(set, section+".")
			if !ok {
				continue
			}
			name, line, _ := strings.Cut(rest, ".")
			if !slices.Contains(lines, line) {
				continue
			}
			key, _, _ := strings.Cut(line, " = ")
			return !slices.ContainsFunc(tableLines(text, section+"."+name), func(l string) bool { return strings.HasPrefix(l, key+" = ") })
		}
		return false
	})
}

// tableLines returns the lines of one table of a text that Graph.Expanded wrote: a key each.
func tableLines(text, table string) []string {
	_, rest, ok := strings.Cut(text, fmt.Sprintf("\n[%s]\n", table))
	if !ok {
		return nil
	}
	body, _, _ := strings.Cut(rest, "\n\n")
	return strings.Split(strings.TrimSuffix(body, "\n"), "\n")
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

// textHash is the SHA-256 of a pipeline.toml, in hexadecimal.
func textHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func version(v control.Version) *runs.Version {
	if v == (control.Version{}) {
		return nil
	}
	r := runs.Version(v)
	return &r
}

func texts(list []control.Change) []string {
	var lines []string
	for _, c := range list {
		lines = append(lines, c.What+" "+c.Name+": "+c.Text)
	}
	return lines
}

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

// Sections of a control.Change.
const (
	changeEnv       = "env"
	changeComponent = "component"
)

// part is the part of a change that concerns one component.
type part struct {
	component string
	env       string // whose version changed; empty if it is the component's own
	old, new  control.Version
	back      []string
	undo      []runs.Table // tables added and removed with it; nil where back is all
	wraps     []runs.Wrap  // wrappers of env that change while the list has as many as before
	checked   string
	trial     *control.Trial
}

// madeAnew is the part of a component that is replaced, with the overrides that bring it back.
func (p part) madeAnew(before *graph.Graph, back []string) part {
	if before.Env(p.env) == nil { // a new table needs no way back
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

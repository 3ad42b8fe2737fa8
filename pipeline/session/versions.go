package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// previous is the version that a component goes back to.
type previous struct {
	version control.Version
	back    []string // overrides that bring it back
}

// recall reads what was changed before this process took the run over.
func (j *Commands) recall() error {
	list, err := j.o.Run.Changes()
	if err != nil && !errors.Is(err, runs.ErrCorrupt) {
		return err
	}
	if err != nil {
		j.log.Warn("what was changed before is known in part", "error", err)
	}
	for i := range list {
		c := &list[i]
		j.number = max(j.number, c.Number)
		for _, v := range []*runs.Version{c.Old, c.New} {
			if v != nil && v.Hash != "" && v.File != "" {
				j.names[v.Hash] = v.File
			}
		}
		if c.Step != j.lastStep || c.Number != j.lastNumber {
			j.count(c.Step)
		}
		j.lastStep, j.lastNumber = c.Step, c.Number
		made := c.Step == runs.StepCommitted || c.Step == runs.StepBack || c.Step == runs.StepBegin && c.After == j.writtenHash()
		if made && c.Component != "" && c.Old != nil && len(c.Back) > 0 {
			j.previous[c.Component] = &previous{version: control.Version(*c.Old), back: j.here(c.Back)}
		}
	}
	return nil
}

// storedUse is an override that names a stored module.
var storedUse = regexp.MustCompile(`^env\.[^.]+\.use = ".*/([0-9a-f]{64})\.wasm"$`)

// here makes overrides name the modules where they lie now: the run's folder may have been moved.
func (j *Commands) here(back []string) []string {
	back = slices.Clone(back)
	for i, set := range back {
		found := storedUse.FindStringSubmatch(set)
		if found == nil {
			continue
		}
		if m, err := j.o.Run.Stored(found[1]); err == nil {
			key, _, _ := strings.Cut(set, " = ")
			back[i] = key + " = " + strconv.Quote(m.Path)
		}
	}
	return back
}

// count counts the steps of changes that SwapCounts tells.
func (j *Commands) count(step string) {
	switch step {
	case runs.StepCommitted:
		j.counts.Committed++
	case runs.StepRefused:
		j.counts.Refused++
	case runs.StepBack:
		j.counts.RolledBack++
	}
}

// mark makes metrics of the changes of what runs: a plot has its marks where they rise.
func (j *Commands) mark() {
	stats := j.o.Pipeline.Stats()
	stats.Gauge("swap/committed").Set(float64(j.counts.Committed))
	stats.Gauge("swap/rolled_back").Set(float64(j.counts.RolledBack))
}

// storeAll stores the modules that the pipeline was built from: whatever happens to their files, a rollback finds them.
func (j *Commands) storeAll() {
	g := j.o.Pipeline.Graph()
	for i := range g.Envs {
		path, ok := j.moduleOf(g, &g.Envs[i])
		if !ok {
			continue
		}
		plugin, err := j.o.Pipeline.Env(g.Envs[i].Name)
		if err != nil {
			continue // not loaded: nothing runs of it
		}
		m, err := j.o.Run.Store(path)
		if err != nil {
			j.log.Warn("the run goes on without a copy of a module: a rollback to it may not find it", "module", path, "error", err)
			continue
		}
		if m.Hash != plugin.Hash() {
			continue // the file has changed since it was loaded
		}
		if _, known := j.names[m.Hash]; !known {
			j.names[m.Hash] = path
		}
	}
}

// moduleOf returns the module file of an environment; ok is false for what has none.
func (j *Commands) moduleOf(g *graph.Graph, e *graph.Env) (path string, ok bool) {
	if e.Table.Plugin != nil || slices.Contains(j.o.Parts.Builtins, e.Table.Use) {
		return "", false
	}
	path, _ = e.Table.Locate(g.Dir, j.o.Parts.Builtins)
	abs, err := filepath.Abs(path)
	return abs, err == nil
}

// name returns what the file of a hash was called when it came in.
func (j *Commands) name(hash, otherwise string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if file, ok := j.names[hash]; ok {
		return file
	}
	return otherwise
}

// envVersion is the version of an environment in a graph. hash is that of its loaded plugin, if it is known.
func (j *Commands) envVersion(g *graph.Graph, env, hash string) control.Version {
	e := g.Env(env)
	if e == nil {
		return control.Version{}
	}
	if path, ok := j.moduleOf(g, e); ok {
		return control.Version{File: j.name(hash, path), Hash: hash}
	}
	use := e.Table.Use
	if e.Table.Plugin != nil {
		use = e.Table.Plugin.Name + ":" + use
	}
	return control.Version{File: use, Hash: hash}
}

// runningEnv is the version of an environment that runs.
func (j *Commands) runningEnv(env string) control.Version {
	hash := ""
	if plugin, err := j.o.Pipeline.Env(env); err == nil {
		hash = plugin.Hash()
	}
	return j.envVersion(j.o.Pipeline.Graph(), env, hash)
}

// componentVersion is what a component of a graph is made from, apart from its environments.
func componentVersion(g *graph.Graph, name string) control.Version {
	c := g.Component(name)
	switch {
	case c == nil:
		return control.Version{}
	case c.Plugin == "":
		return control.Version{File: c.Runtime}
	}
	v := control.Version{File: c.Plugin}
	if p := g.Plugin(c.Plugin); p != nil && p.Table.Path != "" {
		v.File, v.Hash = p.Table.Path, p.Table.SHA256
		if path := programPath(g, p); path != "" {
			if hash, err := files.SHA256(path); err == nil {
				v.Hash = hash
			}
		}
	}
	return v
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

// version is that of a component: of the environments that it runs, else of itself.
func (j *Commands) version(g *graph.Graph, name string) control.Version {
	if env := envOf(g, g.Component(name)); env != "" && g == j.o.Pipeline.Graph() {
		return j.runningEnv(env)
	}
	return componentVersion(g, name)
}

// keys that a table of a graph's text may lack, with what stands for their absence.
var absent = map[string][]string{
	"plugin":    {`sha256 = ""`, "interpreter = []", "args = []", "env = []"},
	"env":       {`sha256 = ""`, `isolation = "host"`, "workers = 1", "args = {}", "limits = {}", "grants = []"},
	"component": {`plugin = ""`, `runtime = "builtin"`},
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

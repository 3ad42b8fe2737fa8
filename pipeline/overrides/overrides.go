// Package overrides makes the overrides that turn a changed graph back into an earlier one: lines as --set takes them.
//
//	sets := overrides.Back(before, "env", "cartpole") // env.cartpole.use = "…", and so on
package overrides

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/pipeline/graph"
)

// absent are the keys that a table of a graph's text may lack, by section, with the value that means absence.
var absent = map[string][]string{
	"plugin":    {`sha256 = ""`, "interpreter = []", "args = []", "pass_env = []"},
	"env":       {`sha256 = ""`, `runtime = "host"`, "workers = 1", "wrap = []", "args = {}", "limits = {}", "grants = []", `data = ""`},
	"component": {`plugin = ""`, `runtime = ""`, `use = ""`, `grants = ""`, `limits = ""`, `data = ""`, `sha256 = ""`, `max_restarts = ""`},
}

// placing are the keys that say where something runs and not what: they stay as they are.
var placing = []string{"cores", "nice", "library_threads"}

// Back returns overrides that make a table of another graph equal to g's: section is env, component, plugin or policy. Keys that g's
// table lacks get the value that means absence. Programs have absolute paths: the other graph may be in another folder.
func Back(g *graph.Graph, section, name string) []string {
	var sets []string
	prefix := section + "." + name + "."
	seen := map[string]bool{}
	for _, line := range tableLines(g.Expanded(), section+"."+name) {
		key, _, _ := strings.Cut(line, " = ")
		seen[key] = true
		if key == "swap" || slices.Contains(placing, key) || section == "component" && slices.Contains([]string{"kind", "count", "loop"}, key) {
			continue
		}
		if section == "plugin" && key == "path" {
			line = "path = " + graph.Literal(absolute(g, name))
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

// absolute returns the absolute path of a plugin's program; a name that is looked up in PATH stays as it is.
func absolute(g *graph.Graph, name string) string {
	path := g.Plugin(name).Table.Path
	if filepath.IsAbs(path) || filepath.Base(path) == path {
		return path
	}
	joined := filepath.Join(g.Dir, path)
	if abs, err := filepath.Abs(joined); err == nil {
		return abs
	}
	return joined
}

// Needed returns the overrides, except removals of keys that g does not have either.
func Needed(g *graph.Graph, back []string) []string {
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

// BackComponent returns overrides that make a component of another graph equal to g's, with its plugin and its policy.
func BackComponent(g *graph.Graph, name string) []string {
	sets := Back(g, "component", name)
	if c := g.Component(name); c != nil && c.Plugin != "" {
		sets = append(sets, Back(g, "plugin", c.Plugin)...)
	}
	for _, line := range tableLines(g.Expanded(), "component."+name) {
		if policy, ok := strings.CutPrefix(line, "policy = "); ok {
			sets = append(sets, Back(g, "policy", strings.Trim(policy, `"`))...)
		}
	}
	return sets
}

// Replaced gives a key another value, as TOML.
func Replaced(sets []string, key, value string) []string {
	sets = slices.DeleteFunc(sets, func(set string) bool { return strings.HasPrefix(set, key+" = ") })
	return append(sets, key+" = "+value)
}

// stored names a module, or a folder of data, that is stored by its SHA-256, as a key of a table or within the list of wrappers.
var stored = regexp.MustCompile(`\b(use|data) = "[^"]*/([0-9a-f]{64})(\.wasm)?"`)

// Moved makes overrides name what is stored, modules and folders of data, by its present path; what path does not know stays as it is.
func Moved(sets []string, path func(hash string, folder bool) (string, error)) []string {
	sets = slices.Clone(sets)
	for i, set := range sets {
		sets[i] = stored.ReplaceAllStringFunc(set, func(named string) string {
			part := stored.FindStringSubmatch(named)
			if now, err := path(part[2], part[3] == ""); err == nil {
				return part[1] + " = " + graph.Literal(now)
			}
			return named
		})
	}
	return sets
}

package graph

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
)

// presetReader reads a preset and the presets that it derives from.
type presetReader struct {
	check *checker
	chain []string // names and paths of the presets up to this one
}

// isPresetPath reports whether a preset is given by the path of its file.
func isPresetPath(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) || strings.HasSuffix(name, ".toml")
}

// named returns the preset that a value names, merged over the presets that it derives from, and its table [preset]. A path is relative to dir.
// It is nil after reporting that one of them cannot be read.
func (r *presetReader) named(name string, at *node, dir string) (*node, presetTable) {
	if !isPresetPath(name) {
		return r.builtIn(name, at)
	}
	file := files.In(dir, name)
	text, ok := (&fileReader{r.check}).readNext(at, r.chain, file)
	if !ok {
		return nil, presetTable{}
	}
	r.check.graph.origin.preset(file)
	n := (&fileReader{r.check}).readTexts(newSource(file, bom(text), firstPreset))
	if n == nil {
		return nil, presetTable{}
	}
	r.sectionsOf(n)
	movePaths(n, filepath.Dir(file), r.check.graph.Dir)
	return r.derived(n, file, filepath.Dir(file))
}

// builtIn is named for a preset of the program.
func (r *presetReader) builtIn(name string, at *node) (*node, presetTable) {
	presets := maps.Clone(r.check.parts.presets())
	for _, other := range r.chain {
		delete(presets, other) // none derives from itself
	}
	text, ok := presets[name]
	switch {
	case ok:
	case len(r.chain) == 0:
		r.check.Add("E010", at.val, unknownPreset(name, presets), "unknown preset %q", name)
		return nil, presetTable{}
	default:
		r.check.Add("E010", at.val, unknownPreset(name, presets), "preset %q derives from %q, which is none of the others", r.chain[len(r.chain)-1], name)
		return nil, presetTable{}
	}
	n := r.check.read(newSource("preset:"+name, text, firstPreset))
	if n == nil {
		return nil, presetTable{}
	}
	return r.derived(n, name, r.check.graph.Dir)
}

// derived takes [preset] out of a preset and merges it over the one that it derives from, relative to dir.
func (r *presetReader) derived(n *node, name, dir string) (*node, presetTable) {
	var about presetTable
	var from, box *node
	if table := n.at("preset"); table != nil {
		if table.kind != tableNode {
			r.check.wrong(table, "preset", "a table: [preset]", "")
			return nil, about
		}
		d := &tableDecoder{report: &r.check.Report, n: table, path: "preset"}
		if d.decode(&about) != nil {
			return nil, about
		}
		from, box = table.at("from"), table.at("box")
		n.remove("preset")
	}
	if about.Box != "" && !slices.Contains(r.chain, about.Box) {
		if r.check.choosing.box {
			return r.named(about.Box, box, dir)
		}
		r.check.choosing.offered = true
	}
	if about.From == "" {
		return n, about
	}
	r.chain = append(r.chain, name)
	base, of := r.named(about.From, from, dir)
	if base == nil {
		return nil, about
	}
	about.Mode = cmp.Or(about.Mode, of.Mode)
	return overlay(base, n), about
}

// presetSections are the keys of a preset's file. What a run is, the pipeline says.
var presetSections = []string{"preset", "plugin", "policy", "swap", "component", "wire"}

// sectionsOf checks the keys of a preset's file itself.
func (r *presetReader) sectionsOf(n *node) {
	n.remove("rlhost")
	for _, name := range slices.Clone(n.names) {
		child := n.table[name]
		if !slices.Contains(presetSections, name) {
			r.check.Add("E002", child.key, cmp.Or(elsewhere(name), table.DidYouMean(name, "`%s`", "keys", presetSections)), "a preset has no key `%s`", name)
			n.remove(name)
		}
	}
	r.check.shapes(n)
}

// elsewhere says where a key of a pipeline belongs that a preset does not have.
func elsewhere(name string) string {
	switch {
	case name == extendsKey:
		return "write from in [preset]"
	case slices.Contains(sectionNames(), name):
		return "write it into the pipeline"
	}
	return ""
}

// unknownPreset is the help for a name that no preset has: the nearest one, and all of them.
func unknownPreset(name string, presets map[string]string) string {
	names := slices.Sorted(maps.Keys(presets))
	help := "presets: " + strings.Join(names, ", ")
	if found, ok := table.Nearest(name, names); ok {
		help = suggest(found) + " " + help
	}
	return help
}

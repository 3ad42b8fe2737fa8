package pipeline

import (
	"maps"
	"slices"
)

// Orders of sources, for sorting problems: the file first.
const (
	setOrder    = 1
	firstPreset = 2
)

// unresolved stands in presets for the environment that [train] names.
const unresolved = "$env"

// Modes of a run.
const (
	modeAsync = "async"
	modeSync  = "sync"
)

// trainTable is the [train] table.
type trainTable struct {
	Preset string `toml:"preset"`
	Env    string `toml:"env"`
	Mode   string `toml:"mode"`
}

// expand applies [train] and the --set arguments: the preset's tables come first, the file's are merged over
// them key by key, then the arguments are set.
func (c *checker) expand(root *node, sets []assignment) *node {
	sets = c.assign(root, sets, func(a assignment) bool { return a.path[0] == "train" })
	root = c.applyPreset(root)
	sets = c.assign(root, sets, func(a assignment) bool { return a.path[0] != "wire" })
	c.wireSets = sets
	return root
}

// applyPreset reads [train] and returns the file with its preset expanded.
func (c *checker) applyPreset(root *node) *node {
	train := root.at("train")
	if train == nil {
		return root
	}
	if train.kind != tableNode {
		c.wrong(train, "train", "a table", "")
		return root
	}
	t := trainTable{Mode: modeAsync}
	d := &tableDecoder{c: &c.problems, n: train, path: "train"}
	if d.decode(&t) != nil {
		c.noPreset()
	}
	c.graph.Synchronous = t.Mode == modeSync
	if n := train.at("mode"); n != nil && n.kind == scalarNode && t.Mode != modeSync && t.Mode != modeAsync {
		c.add("E005", n.val, "modes: async, sync", "`mode` is %q", t.Mode)
	}
	if n := train.at("preset"); n != nil {
		return c.mergePreset(root, train, n, t)
	}
	if n := train.at("env"); n != nil && t.Env != "" {
		c.add("E004", n.key, "", "`env` in [train] is for a preset, and `preset` is missing")
	}
	return root
}

func (c *checker) mergePreset(root, train, n *node, t trainTable) *node {
	presets := c.presets()
	text, ok := presets[t.Preset]
	if !ok {
		if t.Preset != "" {
			names := slices.Collect(maps.Keys(presets))
			c.add("E010", n.val, didYouMean(t.Preset, "%q", "presets", names), "unknown preset %q", t.Preset)
		}
		c.noPreset()
		return root
	}
	base := c.read(newSource("preset:"+t.Preset, text, firstPreset))
	if base == nil {
		return root
	}
	if env := c.presetEnv(root, train, n); env != nil {
		resolve(base, env)
	}
	return overlay(base, root)
}

func (c *checker) presets() map[string]string {
	if c.parts.Presets != nil {
		return c.parts.Presets
	}
	return DefaultPresets()
}

// presetEnv returns the node that names the preset's environment: train.env, or the only declared one.
func (c *checker) presetEnv(root, train, preset *node) *node {
	if n := train.at("env"); n != nil {
		return n
	}
	envs := root.at("env")
	if envs != nil && len(envs.names) == 1 {
		name := envs.names[0]
		return &node{val: envs.table[name].key, value: name}
	}
	if !c.bad["env"] {
		help := "declare one: [env.NAME]"
		if envs != nil && len(envs.names) > 0 {
			help = didYouMean("", "%q", "declared", envs.names)
		}
		c.add("E004", preset.key, help, "`env` is missing in [train]")
	}
	return nil
}

// resolve replaces "$env" in a preset by the name that env holds.
func resolve(n, env *node) {
	if s, _ := n.text(); s == unresolved {
		n.value, n.val = env.value, env.val
	}
	for _, child := range n.table {
		resolve(child, env)
	}
	for _, item := range n.items {
		resolve(item, env)
	}
}

// overlay returns base with the keys of top merged over it. Wires of both are kept, the base's first; a component
// of another kind replaces the base's as a whole.
func overlay(base, top *node) *node {
	merged := *top
	merged.names, merged.table = slices.Clone(base.names), maps.Clone(base.table)
	for _, name := range top.names {
		over, under := top.table[name], base.table[name]
		switch {
		case under == nil || under.kind != over.kind || otherKind(under, over):
			merged.put(name, over)
		case over.kind == tableNode:
			merged.put(name, overlay(under, over))
		case name == "wire" && over.kind == arrayNode:
			both := *over
			both.items = slices.Concat(under.items, over.items)
			merged.put(name, &both)
		default:
			merged.put(name, over)
		}
	}
	return &merged
}

func otherKind(under, over *node) bool {
	a, ok := under.at("kind").text()
	b, given := over.at("kind").text()
	return ok && given && a != b
}

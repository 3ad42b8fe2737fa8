package graph

import (
	"embed"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/rlhost/rlhost/core/table"
)

// trainTable is the [train] table.
type trainTable struct {
	Preset string `toml:"preset" doc:"Preset that the file changes: its name, or the path of a file with one." range:"see [presets](#presets)"`
	Env    string `toml:"env" doc:"Environment that the preset trains on." range:"an [env] table"`
	Mode   string `toml:"mode" doc:"Whether environments and learner work at the same time (async) or in turn (sync), which repeats exactly." range:"async, sync" default:"the preset's, else \"async\""`
}

// presetTable is the [preset] table of a preset.
type presetTable struct {
	About string `toml:"about" doc:"Purpose of the preset, in one sentence."`
	From  string `toml:"from" doc:"Name or path of the preset that this one differs from."`
	Mode  string `toml:"mode" doc:"Mode of a run whose file gives none." range:"async, sync"`
	Box   string `toml:"box" doc:"Preset in its place where all actions are numbers between bounds. It may derive from this one."`
}

// expand applies [train] and the --set arguments: the preset's tables come first, the file's are merged over them key by
// key, then the arguments are set. Arguments of [train] and [run] come before, because presets read them; arguments of
// components that are made for further policies come after these.
func (k *checker) expand(root *node, sets []assignment) *node {
	k.takeKeysOfPolicies(root.at("policy"))
	sets = (&setReader{k}).assign(root, sets, func(a assignment) bool { return a.path[0] == "train" || a.path[0] == "run" })
	root, preset := k.applyPreset(root)
	declared := func(a assignment) bool {
		return a.path[0] != "wire" && (a.path[0] != "component" || len(a.path) < 3 || root.at("component").at(a.path[1]) != nil)
	}
	sets = (&setReader{k}).assign(root, sets, declared)
	addVersions(root)
	if preset != nil {
		k.addGroups(root, preset)
		k.addPolicies(root, preset)
	}
	sets = (&setReader{k}).assign(root, sets, func(a assignment) bool { return a.path[0] != "wire" })
	k.wireSets = sets
	return root
}

// applyPreset reads [train] and returns the file with its preset expanded, and the preset; nil if there is none.
func (k *checker) applyPreset(root *node) (merged, preset *node) {
	train := root.at("train")
	if train == nil {
		return root, nil
	}
	if train.kind != tableNode {
		k.wrong(train, "train", "a table", "")
		return root, nil
	}
	var t trainTable
	d := &tableDecoder{report: &k.Report, n: train, path: "train"}
	if d.decode(&t) != nil && train.at("preset") == nil {
		k.noPreset() // it may be misspelt
	}
	if mode, ok := train.at("mode").text(); ok && mode != ModeSync && mode != ModeAsync {
		k.Add("E005", train.at("mode").val, "modes: async, sync", "`mode` is %q", mode)
	}
	if n := train.at("preset"); n != nil {
		root, preset = k.mergePreset(root, train, n, &t)
	} else if n := train.at("env"); n != nil && t.Env != "" {
		k.Add("E004", n.key, "", "`env` in [train] is for a preset, and `preset` is missing")
	}
	k.graph.Synchronous = t.Mode == ModeSync
	return root, preset
}

// mergePreset merges the file over its preset, which it returns too, and uses the preset's mode if the file gives none.
func (k *checker) mergePreset(root, train, n *node, t *trainTable) (merged, preset *node) {
	if _, ok := n.text(); !ok {
		k.noPreset()
		return root, nil
	}
	base, about := (&presetReader{check: k}).named(t.Preset, n, k.graph.Dir)
	if base == nil {
		k.noPreset()
		return root, nil
	}
	if t.Mode == "" {
		t.Mode = about.Mode
	}
	if env := k.presetEnv(root, train, n); env != nil {
		k.choosing.env, _ = env.text()
		resolve(base, unresolved, env)
	}
	(&scheduler{k}).schedule(root, base)
	return overlay(base, root), base
}

// presetEnv returns the node that names the preset's environment: train.env, or the only declared one.
func (k *checker) presetEnv(root, train, preset *node) *node {
	if n := train.at("env"); n != nil {
		return n
	}
	envs := root.at("env")
	if envs != nil && len(envs.names) == 1 {
		name := envs.names[0]
		return &node{val: envs.table[name].key, value: name}
	}
	if !k.bad["env"] {
		help := "declare one: [env.NAME]"
		if envs != nil && len(envs.names) > 0 {
			help = table.DidYouMean("", "%q", "declared", envs.names)
		}
		k.Add("E004", preset.key, help, "`env` is missing in [train]")
	}
	return nil
}

// resolve replaces a placeholder in a preset by the value of by.
func resolve(n *node, what string, by *node) {
	if s, _ := n.text(); s == what {
		n.value, n.val = by.value, by.val
	}
	for _, child := range n.table {
		resolve(child, what, by)
	}
	for _, item := range n.items {
		resolve(item, what, by)
	}
}

// scheduler works out over how many env steps the learning rate falls.
type scheduler struct{ check *checker }

// schedule writes the env steps of the run into the schedules of a preset's components. If the file changes a running
// run, they keep their values: no rate at an env step changes with the stop rule.
func (c *scheduler) schedule(root, base *node) {
	components := base.at("component")
	if components == nil {
		return
	}
	for name, table := range components.table {
		for key, n := range table.table {
			if s, _ := n.text(); s == runEnvSteps {
				resolve(n, runEnvSteps, c.envSteps(root, n, c.check.running.Component(name).key(key)))
			}
		}
	}
}

// envSteps returns the value of a preset's placeholder n: the running value, else the stop rule's, else 0.
func (c *scheduler) envSteps(root, n, running *node) *node {
	if running != nil {
		return &node{val: n.val, value: running.value}
	}
	if stop := lookup(root, "run.stop.env_steps"); stop != nil {
		if v, ok := stop.value.(int64); ok && v > 0 {
			return stop
		}
	}
	return &node{val: n.val, value: int64(0)}
}

// outlasted warns of schedules that end before the run does.
func (c *scheduler) outlasted() {
	stop := c.check.graph.Run.Stop.EnvSteps
	for i := range c.check.graph.Components {
		x := &c.check.graph.Components[i]
		n := x.key(annealKey)
		if n == nil {
			continue
		}
		steps, ok := n.value.(int64)
		if !ok || steps <= 0 || stop <= uint64(steps) {
			continue
		}
		at := n.val
		if given := lookup(c.check.root, "run.stop.env_steps"); at.order() >= firstPreset && given != nil {
			at = given.val
		}
		key := "component." + x.Name + "." + annealKey
		c.check.Add("W103", at, fmt.Sprintf("set %s = %d, or 0 for a rate that stays", key, stop),
			"the learning rate is 0 from %s = %d on, and the run goes on to run.stop.env_steps = %d", key, steps, stop)
	}
}

// annealKey is the key of a component whose rate falls to 0 over that many env steps.
const annealKey = "lr_anneal_env_steps"

//go:embed presets/*.toml
var presetFiles embed.FS

// DefaultPresets returns the presets for the standard kinds, by name.
func DefaultPresets() map[string]string {
	presets := map[string]string{}
	files, err := presetFiles.ReadDir("presets")
	for _, file := range files {
		var text []byte
		if text, err = presetFiles.ReadFile("presets/" + file.Name()); err != nil {
			break
		}
		presets[strings.TrimSuffix(file.Name(), ".toml")] = string(text)
	}
	if err != nil {
		panic(fmt.Sprintf("pipeline: embedded preset: %v", err))
	}
	return presets
}

func (p *Parts) presets() map[string]string {
	if p.Presets != nil {
		return p.Presets
	}
	return DefaultPresets()
}

// PresetsText describes the presets as comments of a file.
func (p *Parts) PresetsText() string {
	var b strings.Builder
	b.WriteString("# Every key with its value. [train] preset = \"NAME\" stands for all that a file does not say:\n")
	about := p.AboutPresets()
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(about)) {
		fmt.Fprintf(w, "#   %s\t%s\n", name, about[name])
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// AboutPresets returns the purpose of each preset, by name.
func (p *Parts) AboutPresets() map[string]string {
	presets, about := p.presets(), map[string]string{}
	for name := range presets {
		r := &presetReader{check: newChecker("", ParseOptions{Parts: p})}
		if n, table := r.named(name, nil, ""); n != nil {
			about[name] = table.About
		}
	}
	return about
}

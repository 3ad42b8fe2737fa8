package graph

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/search"
)

// TableDescription describes a table of pipeline files for readers.
type TableDescription struct {
	Header string // as in a file: [run], [component.NAME]
	Kind   string // of the component whose keys these are; empty for the keys that all have
	Path   string // without brackets: run, env.NAME, component.learner
	About  string
	Keys   []table.Description
	Ports  component.Manifest // of the kind, before a key adds some
}

// fileKeys are the keys of a file that are no tables.
type fileKeys struct {
	Format  int    `toml:"rlhost" default:"required" range:"1" doc:"Version of the file's format."`
	Extends string `toml:"extends" range:"at most 8 files, one after the other" doc:"File that this one changes: its path, relative to this file."`
}

// Describe describes all tables that a pipeline file may have, with the keys that decoding takes, except for the tables of programs and
// modules of the user's own. Defaults are without a preset.
func (p *Parts) Describe() []TableDescription {
	run, swap, train, plugin, sweep := defaultRun(), defaultSwap(), trainTable{}, pluginDefaults(), search.Default()
	e := envDefaults()
	list := []TableDescription{
		{About: "Keys before the first table.", Keys: table.Describe(&fileKeys{})},
		{Header: "[run]", Path: "run", About: "The run: its name, when it ends, what is saved and evaluated.", Keys: table.Describe(&run)},
		{Header: "[train]", Path: "train", About: "The preset that stands for all that the file leaves out.", Keys: table.Describe(&train)},
		{Header: "[env.NAME]", Path: "env.NAME", About: "An environment.", Keys: table.Describe(&e)},
	}
	if p.CheckPolicy != nil {
		list = append(list, TableDescription{Header: "[policy.NAME]", Path: "policy.main",
			About: "A policy: the network, its inputs and how it draws actions.", Keys: slices.Concat(describePolicy(), describeDecoded(p.CheckPolicy))})
	}
	var group groupFile
	cluster := DefaultCluster()
	c, m := componentDefaults(), defaultModule()
	list = append(list,
		TableDescription{Header: "[component.NAME]", Path: "component.rollout", About: "A component. These keys are for every kind.", Keys: table.Describe(&c)},
		TableDescription{Header: "[component.NAME]", Path: "component", Kind: RuntimeWasm, About: "Keys of a component that is a module, besides its own.", Keys: table.Describe(&m)})
	for _, kind := range slices.Sorted(maps.Keys(p.Kinds)) {
		made := p.Kinds[kind]()
		list = append(list, TableDescription{Header: "[component.NAME]", Path: "component." + kind, Kind: kind,
			Keys: describeDecoded(made.Configure), Ports: made.Manifest()})
	}
	return append(list,
		TableDescription{Header: "[[wire]]", Path: "wire", About: "A wire from a signal to a slot.", Keys: table.Describe(&wireFile{})},
		TableDescription{Header: "[group.NAME]", Path: "group.NAME", About: "Components that are placed and counted together.", Keys: table.Describe(&group)},
		TableDescription{Header: "[cluster]", Path: "cluster", About: "How [other machines](../how-to/several-hosts.md) join the run. It is read when the run begins.", Keys: table.Describe(&cluster)},
		TableDescription{Header: "[plugin.NAME]", Path: "plugin.NAME", About: "A program with components or environments of your own.", Keys: table.Describe(&plugin)},
		TableDescription{Header: "[swap]", Path: "swap", About: "How changes to the running job are tried and take effect.", Keys: table.Describe(&swap)},
		TableDescription{Header: "[sweep]", Path: "sweep", About: "What `rlhost sweep` searches, and how. `rlhost train` does not read it.", Keys: table.Describe(&sweep)},
	)
}

// describePolicy describes the keys of a policy's table that belong to the pipeline.
func describePolicy() []table.Description {
	return append([]table.Description{{Key: "env", Type: "text", Default: "required", Range: "an [env] table", Meaning: "Environment that it acts in."}},
		table.Describe(&policyFile{})...)
}

// describeDecoded describes the struct that something decodes its table into.
func describeDecoded(configure func(decode func(into any) error) error) (keys []table.Description) {
	_ = configure(func(into any) error { // which reads nothing
		if reflect.TypeOf(into).Kind() == reflect.Pointer {
			keys = table.Describe(into)
		}
		return errDecode
	})
	return keys
}

// DeliveryText returns what a wire of a payload has for the keys mode, depth and on_full where its table leaves them out.
func DeliveryText(payload string) (mode, depth, onFull string) {
	d := deliveryOf(payload)
	return quote(d.mode.String()), strconv.Itoa(d.depth), quote(d.onFull.String())
}

package graph

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/core/table"
)

// componentFile holds the keys of a component's table that belong to the pipeline.
type componentFile struct {
	Kind    string `toml:"kind" doc:"Kind of the component." range:"see below" default:"required for kinds of rlhost"`
	Count   int    `toml:"count" doc:"Instances that share its work." range:"1 to 1024"`
	Loop    string `toml:"loop" doc:"Event loop that runs it; components of one loop run one at a time." default:"a loop of its own"`
	Runtime string `toml:"runtime" doc:"Where it runs." range:"builtin, process, wasm"`
	Plugin  string `toml:"plugin" doc:"[plugin] table of the program that has it."`
	Swap    string `toml:"swap" doc:"Whether a swap or a reload may replace it." range:"always, never"`
	buildKeys
	place.Place
	Hosts HostRule `toml:"place,omitempty" doc:"Which hosts of the run may have its instances." range:"pack, spread or a table" default:"the run's own"`
	// Asks are read again with their places, once all components are known.
	Asks map[string]string `toml:"asks,omitempty" name:"QUESTION" doc:"Which request of which component answers a question that it asks." range:"COMPONENT.REQUEST"`
}

func componentDefaults() componentFile {
	return componentFile{Count: 1, Runtime: RuntimeBuiltin, Swap: string(SwapAlways), buildKeys: defaultBuild()}
}

// Bounds on instances: ids have 16 bits, and no machine runs more.
const (
	maxCount     = 1024
	maxInstances = 16384
)

// componentTables reads [component.NAME].
func (k *checker) componentTables() {
	list := k.named("component")
	if len(list) == 0 && k.root.at("component") == nil && !k.bad["component"] {
		k.Add("E004", k.top(), `add [train] with a preset, such as preset = "general"`, "there are no components")
	}
	instances := 0
	for _, n := range list {
		x, ok := k.componentTable(n.node, n.name)
		if !ok {
			k.broken["component."+x.Name] = true
			continue
		}
		if instances += x.Count; instances > maxInstances {
			k.Add("E005", n.key, "", "there are %d instances of components up to this one, at most %d", instances, maxInstances)
			instances = 0
		}
		k.graph.Components = append(k.graph.Components, x)
	}
}

// componentTable reads one component; ok is false if its ports are not known.
func (k *checker) componentTable(n *node, name string) (x Component, ok bool) {
	x = Component{Name: name, table: n}
	path := "component." + x.Name
	f := componentDefaults()
	d := &tableDecoder{report: &k.Report, n: n.only(ownKeys), path: path}
	d.decode(&f) // errors have been noted
	x.Kind, x.Count, x.Loop, x.Runtime, x.Place, x.Hosts = f.Kind, f.Count, f.Loop, f.Runtime, f.Place, f.Hosts
	x.Swap = k.swapRule(n, f.Swap)
	(&placer{k}).place(n, &x)
	k.checkOwn(n, path, &f)
	maker := k.makerOf(n, &x, &f)
	if maker == nil {
		return x, false
	}
	(&placeReader{k}).own(n, &x)
	if x.Plugin != "" || x.Module != nil {
		x.maker = maker
	}
	x.Env, x.Policy = k.reference(n, "env"), k.reference(n, "policy")
	made, err := maker()
	switch {
	case err != nil && x.Module != nil:
		(&moduleReader{k}).problem(n, &x, err)
		return x, false
	case err != nil:
		k.pluginProblem(k.graph.Plugin(x.Plugin), err)
		return x, false
	}
	k.configure(&x, made, path)
	return x, true
}

func (k *checker) checkOwn(n *node, path string, f *componentFile) {
	if f.Count < 1 || f.Count > maxCount {
		if child := n.at("count"); child != nil {
			k.Add("E005", child.val, "", "`count` is %d, must be 1 to %d", f.Count, maxCount)
		}
	}
	k.checkRuntime(n, f)
	(&buildReader{k}).checkKeys("component", n, path, &f.buildKeys)
	if child := n.at("loop"); child != nil && f.Loop != "" && !validName(trimIndex(f.Loop)) {
		k.Add("E005", child.val, "use letters, digits, _ and -, with a letter first", "`loop` is %q", f.Loop)
	}
}

func (k *checker) unknownKind(n *node, path, kind string, kinds []string) {
	child := n.at("kind")
	if child == nil {
		help, name := table.DidYouMean("", "%q", "kinds", kinds), strings.TrimPrefix(path, "component.")
		others := slices.DeleteFunc(slices.Clone(k.root.at("component").names), func(other string) bool { return other == name })
		if near, ok := table.Nearest(name, others); ok && len(name) > 4 { // of shorter names every other one is near
			help = fmt.Sprintf("did you mean [component.%s]? A component of its own needs a kind: %s", near, strings.Join(slices.Sorted(slices.Values(kinds)), ", "))
		}
		k.Add("E004", n.key, help, "`kind` is missing in [%s]", path)
		return
	}
	if s, ok := child.text(); ok {
		k.Add("E010", child.val, table.DidYouMean(s, "%q", "kinds", kinds), "unknown kind %q", s)
	}
}

// configure lets a component check its table.
func (k *checker) configure(x *Component, made component.Component, path string) {
	d := (&tableDecoder{report: &k.Report, n: x.table, path: path}).skipping(x.ownKeys()...)
	since := len(k.list)
	k.configErrors(x.table, path, &d.faults, made.Configure(d.note))
	x.Manifest, x.config, x.made = made.Manifest(), d.into, made
	k.unsure[x.Name] = k.failed(since)
	if flowing, ok := made.(component.Flowing); ok && !k.unsure[x.Name] {
		x.Flow = flowing.Flow()
	}
	if !k.unsure[x.Name] {
		x.BurnIn = burnInOf(x, made)
	}
	if episodic, ok := made.(component.Episodic); ok && !k.unsure[x.Name] {
		x.Whole = episodic.WholeEpisodes()
	}
	if offering, ok := made.(component.Offering); ok {
		x.offers = offering.Offers()
	}
	if watched, ok := made.(component.Watched); ok && !k.unsure[x.Name] {
		x.Looks = watched.Looks()
	}
}

// burnInOf returns the rows of burn-in of a component, 0 where it has none. A learner in a process cannot be asked: its key says it.
func burnInOf(x *Component, made component.Component) int {
	if warming, ok := made.(component.Warming); ok {
		return warming.BurnInRows()
	}
	n := x.table.at("burn_in_rows")
	if n == nil || !x.Learns() {
		return 0
	}
	rows, _ := n.value.(int64)
	return int(rows)
}

// pluginFile is a [plugin.NAME] table as written in the file.
type pluginFile struct {
	PluginTable
	buildKeys
}

func pluginDefaults() pluginFile {
	return pluginFile{PluginTable: DefaultPlugin(), buildKeys: defaultBuild()}
}

// pluginTables reads [plugin.NAME].
func (k *checker) pluginTables() {
	for _, table := range k.named("plugin") {
		name, n := table.name, table.node
		f := pluginDefaults()
		p := &Plugin{table: n, at: n.key}
		since := len(k.list)
		d := &tableDecoder{report: &k.Report, n: n, path: "plugin." + name}
		d.decode(&f) // errors have been noted
		p.Table = f.PluginTable
		p.Table.Name = name
		p.Table.SHA256 = strings.ToLower(p.Table.SHA256)
		k.checkSHA(n, p.Table.SHA256)
		(&buildReader{k}).checkKeys("plugin", n, "plugin."+name, &f.buildKeys)
		k.atLeast(n, "max_restarts", p.Table.MaxRestarts, 0)
		(&placeReader{k}).place(n, "plugin."+name, &p.Table.Place)
		switch path := n.at("path"); {
		case path == nil:
			k.Add("E004", n.key, `name the program: path = "./`+name+`"`, "`path` is missing in [plugin.%s]", name)
		case p.Table.Path == "" && !k.failed(since):
			k.Add("E005", path.val, "", "`path` is empty")
		default:
			p.at = path.val
		}
		if k.failed(since) {
			k.broken["plugin."+name] = true
		}
		k.graph.Plugins = append(k.graph.Plugins, p)
	}
}

// makerOf returns the Maker of a table's component, as its keys kind, runtime and plugin say; nil after reporting a
// problem.
func (k *checker) makerOf(n *node, x *Component, f *componentFile) Maker {
	path := "component." + x.Name
	switch {
	case f.Runtime == RuntimeWasm:
		return (&moduleReader{k}).maker(n, x, f.Kind)
	case x.implied:
		return k.kindOf(n, x, f)
	case n.at("plugin") != nil:
		x.Plugin = k.reference(n, "plugin")
		return k.kindOf(n, x, f)
	}
	maker := k.parts.Kinds[f.Kind]
	if maker == nil {
		k.unknownKind(n, path, f.Kind, slices.Collect(maps.Keys(k.parts.Kinds)))
		return nil
	}
	return BuiltinMaker(maker)
}

// kindOf is makerOf for a component of a native plugin. The kind may be left out where there is only one.
func (k *checker) kindOf(n *node, x *Component, f *componentFile) Maker {
	x.Runtime = RuntimeProcess
	p := k.graph.Plugin(x.Plugin)
	if p == nil {
		return nil
	}
	kinds := k.ask(p)
	if p.err != nil || k.broken["plugin."+x.Plugin] {
		return nil
	}
	if len(kinds) == 1 && n.at("kind") == nil {
		for only := range kinds {
			f.Kind, x.Kind = only, only
		}
	}
	maker := kinds[f.Kind]
	if maker == nil {
		k.unknownKind(n, "component."+x.Name, f.Kind, slices.Collect(maps.Keys(kinds)))
	}
	return maker
}

// checkRuntime checks the key runtime against the key plugin.
func (k *checker) checkRuntime(n *node, f *componentFile) {
	child := n.at("runtime")
	if child == nil || f.Runtime == "" {
		return
	}
	switch {
	case f.Runtime != RuntimeBuiltin && f.Runtime != RuntimeProcess && f.Runtime != RuntimeWasm:
		k.Add("E010", child.val, "runtimes of components: builtin, process, wasm", "unknown runtime %q", f.Runtime)
	case f.Runtime == RuntimeBuiltin && n.at("plugin") != nil:
		k.Add("E005", child.val, `leave it out, or write "process"`, "`runtime` is %q, but the component is a plugin's", f.Runtime)
	}
}

package graph

import (
	"maps"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// componentFile holds the keys of a component's table that belong to the pipeline.
type componentFile struct {
	Kind    string `toml:"kind"`
	Count   int    `toml:"count"`
	Loop    string `toml:"loop"`
	Runtime string `toml:"runtime"`
	Plugin  string `toml:"plugin"`
	Swap    string `toml:"swap"`
}

// Bounds on instances: ids have 16 bits, and no machine runs more.
const (
	maxCount     = 1024
	maxInstances = 16384
)

// componentTables reads [component.NAME].
func (c *checker) componentTables() {
	list := c.named("component")
	if len(list) == 0 && c.root.at("component") == nil && !c.bad["component"] {
		c.Add("E004", c.top(), `add [train] with a preset, such as preset = "general"`, "there are no components")
	}
	instances := 0
	for _, n := range list {
		x, ok := c.componentTable(n.node, n.name)
		if !ok {
			c.broken["component."+x.Name] = true
			continue
		}
		if instances += x.Count; instances > maxInstances {
			c.Add("E005", n.key, "", "there are %d instances of components up to this one, at most %d", instances, maxInstances)
			instances = 0
		}
		c.graph.Components = append(c.graph.Components, x)
	}
}

// componentTable reads one component; ok is false if its ports are not known.
func (c *checker) componentTable(n *node, name string) (x Component, ok bool) {
	x = Component{Name: name, table: n}
	path := "component." + x.Name
	f := componentFile{Count: 1, Runtime: RuntimeBuiltin, Swap: string(SwapAlways)}
	d := &tableDecoder{c: &c.Report, n: n.only(ownKeys), path: path}
	d.decode(&f) // what is wrong has been noted
	x.Kind, x.Count, x.Loop, x.Runtime = f.Kind, f.Count, f.Loop, f.Runtime
	x.Swap = c.swapRule(n, f.Swap)
	(&placer{c}).place(n, &x)
	c.checkOwn(n, path, &f)
	maker := c.makerOf(n, &x, &f)
	if maker == nil {
		return x, false
	}
	if x.Plugin != "" || x.Module != nil {
		x.maker = maker
	}
	x.Env, x.Policy = c.reference(n, "env"), c.reference(n, "policy")
	made, err := maker()
	switch {
	case err != nil && x.Module != nil:
		(&moduleReader{c}).problem(n, &x, err)
		return x, false
	case err != nil:
		c.pluginProblem(c.graph.Plugin(x.Plugin), err)
		return x, false
	}
	c.configure(&x, made, path)
	return x, true
}

func (c *checker) checkOwn(n *node, path string, f *componentFile) {
	if f.Count < 1 || f.Count > maxCount {
		if child := n.at("count"); child != nil {
			c.Add("E005", child.val, "", "`count` is %d, must be 1 to %d", f.Count, maxCount)
		}
	}
	c.checkRuntime(n, f)
	if child := n.at("loop"); child != nil && f.Loop != "" && !validName(trimIndex(f.Loop)) {
		c.Add("E005", child.val, "use letters, digits, _ and -, with a letter first", "`loop` is %q", f.Loop)
	}
}

func (c *checker) unknownKind(n *node, path, kind string, kinds []string) {
	child := n.at("kind")
	if child == nil {
		c.Add("E004", n.key, table.DidYouMean("", "%q", "kinds", kinds), "`kind` is missing in [%s]", path)
		return
	}
	if s, ok := child.text(); ok {
		c.Add("E010", child.val, table.DidYouMean(s, "%q", "kinds", kinds), "unknown kind %q", s)
	}
}

// configure lets a component check its table.
func (c *checker) configure(x *Component, made component.Component, path string) {
	d := (&tableDecoder{c: &c.Report, n: x.table, path: path}).skipping(x.ownKeys()...)
	since := len(c.list)
	c.configErrors(x.table, path, made.Configure(d.decode))
	x.Manifest, x.config, x.made = made.Manifest(), d.into, made
	c.unsure[x.Name] = c.failed(since)
	if flowing, ok := made.(component.Flowing); ok && !c.unsure[x.Name] {
		x.Flow = flowing.Flow()
	}
	if offering, ok := made.(component.Offering); ok {
		x.offers = offering.Offers()
	}
	if watched, ok := made.(component.Watched); ok && !c.unsure[x.Name] {
		x.Looks = watched.Looks()
	}
}

// pluginTables reads [plugin.NAME].
func (c *checker) pluginTables() {
	for _, table := range c.named("plugin") {
		name, n := table.name, table.node
		p := &Plugin{Table: DefaultPlugin(), table: n, at: n.key}
		since := len(c.list)
		d := &tableDecoder{c: &c.Report, n: n, path: "plugin." + name}
		d.decode(&p.Table) // what is wrong has been noted
		p.Table.Name = name
		p.Table.SHA256 = strings.ToLower(p.Table.SHA256)
		c.checkSHA(n, p.Table.SHA256)
		c.atLeast(n, "restarts", p.Table.Restarts, 0)
		switch path := n.at("path"); {
		case path == nil:
			c.Add("E004", n.key, `name the program: path = "./`+name+`"`, "`path` is missing in [plugin.%s]", name)
		case p.Table.Path == "" && !c.failed(since):
			c.Add("E005", path.val, "", "`path` is empty")
		default:
			p.at = path.val
		}
		if c.failed(since) {
			c.broken["plugin."+name] = true
		}
		c.graph.Plugins = append(c.graph.Plugins, p)
	}
}

// makerOf returns the Maker of a table's component, as its keys kind, runtime and plugin say; nil after reporting a
// problem.
func (c *checker) makerOf(n *node, x *Component, f *componentFile) Maker {
	path := "component." + x.Name
	switch {
	case f.Runtime == RuntimeWasm:
		return (&moduleReader{c}).maker(n, x, f.Kind)
	case x.implied:
		return c.kindOf(n, x, f)
	case n.at("plugin") != nil:
		x.Plugin = c.reference(n, "plugin")
		return c.kindOf(n, x, f)
	}
	maker := c.parts.Kinds[f.Kind]
	if maker == nil {
		c.unknownKind(n, path, f.Kind, slices.Collect(maps.Keys(c.parts.Kinds)))
		return nil
	}
	return BuiltinMaker(maker)
}

// kindOf is makerOf for a component of a native plugin. The kind may be left out where there is only one.
func (c *checker) kindOf(n *node, x *Component, f *componentFile) Maker {
	x.Runtime = RuntimeProcess
	p := c.graph.Plugin(x.Plugin)
	if p == nil {
		return nil
	}
	kinds := c.ask(p)
	if p.err != nil || c.broken["plugin."+x.Plugin] {
		return nil
	}
	if len(kinds) == 1 && n.at("kind") == nil {
		for only := range kinds {
			f.Kind, x.Kind = only, only
		}
	}
	maker := kinds[f.Kind]
	if maker == nil {
		c.unknownKind(n, "component."+x.Name, f.Kind, slices.Collect(maps.Keys(kinds)))
	}
	return maker
}

// checkRuntime checks the key runtime against the key plugin.
func (c *checker) checkRuntime(n *node, f *componentFile) {
	child := n.at("runtime")
	if child == nil || f.Runtime == "" {
		return
	}
	switch {
	case f.Runtime != RuntimeBuiltin && f.Runtime != RuntimeProcess && f.Runtime != RuntimeWasm:
		c.Add("E010", child.val, "runtimes of components: builtin, process, wasm", "unknown runtime %q", f.Runtime)
	case f.Runtime == RuntimeBuiltin && n.at("plugin") != nil:
		c.Add("E005", child.val, `leave it out, or write "process"`, "`runtime` is %q, but the component is a plugin's", f.Runtime)
	}
}

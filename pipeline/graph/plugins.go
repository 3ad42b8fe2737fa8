package graph

import (
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
)

// Runtimes of components.
const (
	RuntimeBuiltin = "builtin" // in the host
	RuntimeProcess = "process" // in a process of its own
)

// PluginTable is a [plugin.NAME] table: a native program, and how it is run.
type PluginTable struct {
	Name string
	// Path is the program or script, relative to the file unless it is absolute; empty stands for the program that
	// reads the file, which can run its own kinds in a process each.
	Path        string        `toml:"path"`
	Interpreter []string      `toml:"interpreter"`  // command that runs Path, such as ["python3", "-u"]; empty: Path is a program
	Args        []string      `toml:"args"`         // further arguments
	SHA256      string        `toml:"sha256"`       // of Path, hexadecimal; empty if any will do
	Env         []string      `toml:"env"`          // names of environment variables that are passed on
	Restarts    int           `toml:"restarts"`     // of each instance within ten minutes before the run fails
	Start       time.Duration `toml:"start"`        // longest time until it has answered and started
	Stall       time.Duration `toml:"stall"`        // longest time without progress while work waits; 0 = any
	Snapshot    time.Duration `toml:"snapshot"`     // how old a state a restarted plugin goes on from at most; 0 = none
	Memory      int64         `toml:"memory,bytes"` // most bytes of arenas that an instance may ask for
}

// DefaultPlugin returns a table with the defaults of [plugin.NAME].
func DefaultPlugin() PluginTable {
	return PluginTable{Restarts: 10, Start: time.Minute, Stall: 30 * time.Second, Snapshot: 5 * time.Second, Memory: 1 << 30}
}

// Plugin is a declared plugin.
type Plugin struct {
	Table PluginTable
	// Digest is that of the program when it was asked for its kinds.
	Digest string

	table *node
	at    Span // of the value of path
	kinds map[string]Maker
	asked bool
	err   error // why there are no kinds
}

// Plugin returns the plugin of that name, or nil.
func (g *Graph) Plugin(name string) *Plugin {
	i := slices.IndexFunc(g.Plugins, func(p *Plugin) bool { return p.Table.Name == name })
	if i < 0 {
		return nil
	}
	return g.Plugins[i]
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

// ask starts a plugin to learn what kinds of components it makes, once.
func (c *checker) ask(p *Plugin) map[string]Maker {
	if p.asked || c.broken["plugin."+p.Table.Name] {
		return p.kinds
	}
	p.asked = true
	p.Digest = p.Table.Digest(c.graph.Dir)
	if c.parts.Plugin == nil {
		p.err = errors.New("this program runs no native plugins")
	} else {
		p.kinds, p.err = c.parts.Plugin(p.Table, c.graph.Dir)
	}
	if p.err != nil {
		c.pluginProblem(p, p.err)
	}
	return p.kinds
}

// pluginProblem says why a plugin cannot be used.
func (c *checker) pluginProblem(p *Plugin, err error) {
	var known *table.Error
	switch {
	case errors.As(err, &known) && known.Key == "":
		c.Add(known.Code, p.at, known.Help, "plugin %q: %s", p.Table.Name, known.Reason)
	case errors.Is(err, fs.ErrNotExist):
		c.Add("E012", p.at, "build it first, or correct the path", "plugin %q: %s: no such file", p.Table.Name, p.Table.Path)
	default:
		c.Add("E012", p.at, "", "plugin %q: %v", p.Table.Name, err)
	}
}

// makerOf returns what makes the component of a table, as its keys kind, runtime and plugin say; nil with a problem
// noted.
func (c *checker) makerOf(n *node, x *Component, f *componentFile) Maker {
	path := "component." + x.Name
	if n.at("plugin") != nil {
		return c.makerInPlugin(n, x, f)
	}
	maker := c.parts.Kinds[f.Kind]
	if maker == nil {
		c.unknownKind(n, path, f.Kind, slices.Collect(maps.Keys(c.parts.Kinds)))
		return nil
	}
	return BuiltinMaker(maker)
}

// BuiltinMaker is the Maker of a kind that is always there.
func BuiltinMaker(make func() component.Component) Maker {
	return func() (component.Component, error) { return make(), nil }
}

// makerInPlugin is makerOf for a component of a native plugin. The kind may be left out where there is only one.
func (c *checker) makerInPlugin(n *node, x *Component, f *componentFile) Maker {
	x.Plugin = c.reference(n, "plugin")
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
	case f.Runtime != RuntimeBuiltin && f.Runtime != RuntimeProcess:
		c.Add("E010", child.val, "runtimes of components: builtin, process", "unknown runtime %q", f.Runtime)
	case f.Runtime == RuntimeBuiltin && n.at("plugin") != nil:
		c.Add("E005", child.val, `leave it out, or write "process"`, "`runtime` is %q, but the component is a plugin's", f.Runtime)
	}
}

// lines writes out what differs from the defaults.
func (p *PluginTable) lines() []keyValue {
	all, defaults := encodeStruct(reflect.ValueOf(*p)), encodeStruct(reflect.ValueOf(DefaultPlugin()))
	var list []keyValue
	for i, kv := range all {
		if kv != defaults[i] {
			list = append(list, kv)
		}
	}
	return list
}

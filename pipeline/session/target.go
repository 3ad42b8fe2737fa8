package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Runtimes of components, as the file has them.
const (
	runtimeBuiltin = "builtin"
	runtimeProcess = "process"
)

// aim finds the graph that a swap of a component to a file leads to.
func (ch *change) aim(file string) error {
	x, err := ch.job.named(ch.component)
	if err != nil {
		return err
	}
	ch.component = x.Name
	if x.Swap == graph.SwapNever {
		return forbidden("component", x.Name)
	}
	g := ch.job.Pipeline.Graph()
	env := g.Env(x.Env)
	switch _, _, native := graph.SplitUse(file); {
	case file == "":
		return bad("a swap needs a file")
	case ch.wraps:
		return ch.aimWrapper(env, file)
	case x.Kind == graph.KindModule && !strings.HasSuffix(file, ".wasm"):
		return withoutKind(x, file)
	case file == runtimeBuiltin, file == runtimeProcess:
		ch.writes(append(ch.withoutSource(x), "component."+x.Name+".runtime="+graph.Literal(file)))
		return ch.aimAt(append(ch.withoutSource(x), "component."+x.Name+".runtime = "+graph.Literal(file))...)
	case env == nil && strings.HasSuffix(file, ".wasm"):
		return ch.aimComponent(x, file)
	case env == nil:
		return ch.aimProgram(g, x, file)
	case env.Swap == graph.SwapNever:
		return forbidden("env", env.Name)
	case native, slices.Contains(ch.job.Parts.Builtins, file):
		ch.writes([]string{"env." + env.Name + ".use=" + graph.Literal(file)})
		return ch.aimEnv(env.Name, file)
	}
	return ch.aimFile(g, env, file)
}

// withoutKind refuses to make something else of a component whose table says nothing but which module it is.
func withoutKind(x *graph.Component, file string) error {
	e := control.Errorf(control.CodeRefused, "%s has no `kind`: outside of a sandbox that says what it is, as a module does by itself", x.Name)
	e.Help = fmt.Sprintf("write kind = \"KIND\" in [component.%s], as rlhost plugin show or rlhost explain E010 lists them, rlhost reload, and swap it to %s again", x.Name, file)
	return e
}

// aimFile is aim for the environments in a file: a module, or a new version of the program that they come from now.
func (ch *change) aimFile(g *graph.Graph, env *graph.Env, file string) error {
	module, err := isModule(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noSuchFile(file, ch.job.Parts.Builtins)
	case err != nil:
		return &control.Error{Code: "E012", Reason: fmt.Sprintf("%s cannot be read: %v", file, err), Exit: int(Plugin)}
	case module:
		return ch.aimModule(env, file)
	}
	if p := env.Table.Plugin; p != nil && p.Path != "" && g.Plugin(p.Name) != nil {
		ch.writes(programSets(p.Name, file))
		return ch.aimAt(programSets(p.Name, file)...)
	}
	e := bad("%s is no WebAssembly module", file)
	e.Help = "environments of a native program: declare [plugin.NAME] and swap to NAME:ENVIRONMENT"
	e.Exit = int(Plugin)
	return e
}

// aimModule stores a module and aims at the copy, which never changes.
func (ch *change) aimModule(env *graph.Env, file string) error {
	m, err := ch.job.history.store(file)
	if err != nil {
		return err
	}
	ch.modules = append(ch.modules, m)
	if ch.job.runsModule(env, m.Hash) {
		ch.next = ch.job.Pipeline.Graph() // whatever its file is called
		return nil
	}
	ch.writes([]string{"env." + env.Name + ".use=" + graph.Literal(file), "env." + env.Name + ".sha256=" + strconv.Quote(m.Hash)})
	return ch.aimEnv(env.Name, m.Path)
}

// aimComponent is aim for a component made from a module, of which it stores a copy.
func (ch *change) aimComponent(x *graph.Component, file string) error {
	if _, err := isModule(file); err != nil {
		return noSuchFile(file, nil)
	}
	m, err := ch.job.history.store(file)
	if err != nil {
		return err
	}
	ch.modules = append(ch.modules, m)
	if x.Module != nil && x.Module.Digest == m.Hash {
		ch.next = ch.job.Pipeline.Graph() // whatever its file is called
		return nil
	}
	table := "component." + x.Name
	sets := []string{table + ".runtime=wasm", table + ".use=" + graph.Literal(m.Path), table + `.sha256=""`}
	written := []string{table + `.runtime="wasm"`, table + ".use=" + graph.Literal(file), table + ".sha256=" + strconv.Quote(m.Hash)}
	if x.Module == nil {
		written = append(ch.withoutSource(x), written...)
		sets = append(ch.withoutSource(x), sets...)
	}
	ch.writes(written)
	return ch.aimAt(sets...)
}

// withoutSource returns overrides that remove the source keys from a component's table, for aimAt.
func (ch *change) withoutSource(x *graph.Component) (sets []string) {
	for _, key := range graph.SourceKeys {
		if key != "plugin" && x.Module == nil || key == "plugin" && x.Plugin == "" {
			continue // its own
		}
		sets = append(sets, "component."+x.Name+"."+key+removed)
	}
	return sets
}

// aimWrapper is aim for a wrapper of environments: its table takes the place in the list.
func (ch *change) aimWrapper(e *graph.Env, wrapper string) error {
	switch {
	case e == nil:
		return bad("%s runs no environments", ch.component)
	case e.Swap == graph.SwapNever:
		return forbidden("env", e.Name)
	case ch.wrapper < 0 || ch.wrapper >= len(e.Table.Wrap):
		return noSuchWrapper(e, ch.wrapper)
	case !strings.HasPrefix(wrapper, "{") && !strings.HasSuffix(wrapper, ".wasm"):
		return bad("%s is not the table of a wrapper, such as { time_limit = 200 }, nor a module", wrapper)
	}
	table := e.Table
	table.Wrap = ch.job.history.storedWrap(e, false)
	list, was, _ := table.Rewrapped(ch.wrapper, wrapper)
	ch.notes = append(ch.notes, fmt.Sprintf("wrap[%d] of env %q: %s → %s", ch.wrapper, e.Name, was, wrapper))
	set := "env." + e.Name + ".wrap="
	named := e.Table
	hashes := ch.job.history.runningWrap(e)
	named.Wrap = named.WrapUsing(func(place int, use string) string { return ch.job.history.name(hashes[place], use) })
	dir := ch.job.Pipeline.Graph().Dir
	named.Wrap = named.WrapReading(func(_ int, data string) string { return ch.job.history.dataName(files.In(dir, data), data) })
	if text, _, ok := named.Rewrapped(ch.wrapper, wrapper); ok {
		ch.writes([]string{set + text})
	}
	err := ch.aimAt(set + list)
	if err == nil && len(ch.next.Env(e.Name).Table.Wrap) != len(e.Table.Wrap) {
		err = bad("%s is not the table of one wrapper, such as { time_limit = 200 }", wrapper)
	}
	if err == nil {
		err = ch.aimAt(set + ch.keepWrap(ch.next, ch.next.Env(e.Name)))
	}
	return err
}

func noSuchWrapper(e *graph.Env, place int) error {
	refused := control.Errorf(control.CodeUnknown, "env %q has %d wrappers: wrap[%d] is not one of them", e.Name, len(e.Table.Wrap), place)
	refused.Help = "they count from 0; to add one, change the file and rlhost reload it"
	return refused
}

// removed ends an override that removes a key.
const removed = " = \"\""

func (ch *change) aimEnv(env, use string) error {
	sets := []string{"env." + env + ".use=" + graph.Literal(use), "env." + env + ".sha256=\"\""}
	running := ch.job.Pipeline.Graph()
	if e := running.Env(env); e.Table.Data != "" { // which stays what was loaded, whatever its folder is now
		if path, _ := ch.job.history.runningData(e); path != e.Table.DataIn(running.Dir) {
			sets = append(sets, "env."+env+".data="+graph.Literal(path))
		}
	}
	return ch.aimAt(sets...)
}

// aimProgram is aim for a component made by a native program: a declared one, or one given by its path.
func (ch *change) aimProgram(g *graph.Graph, x *graph.Component, file string) error {
	ofPlugin := func(name string) []string {
		return append(ch.withoutSource(x), "component."+x.Name+".runtime=\"process\"", "component."+x.Name+".plugin="+strconv.Quote(name))
	}
	if g.Plugin(file) != nil {
		ch.writes(ofPlugin(file))
		return ch.aimAt(ofPlugin(file)...)
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noSuchFile(file, ch.job.Parts.Builtins)
	case err != nil:
		return &control.Error{Code: "E012", Reason: fmt.Sprintf("%s cannot be read: %v", file, err), Exit: int(Plugin)}
	case info.IsDir():
		return bad("%s is a folder", file)
	}
	if x.Plugin != "" && plainlyUsed(g, x) {
		ch.writes(programSets(x.Plugin, file))
		return ch.aimAt(programSets(x.Plugin, file)...)
	}
	name := freePlugin(g, file)
	sets := append(programSets(name, file), ofPlugin(name)...)
	ch.writes(sets)
	return ch.aimAt(sets...)
}

// writes keeps the overrides that a pipeline file needs for the swap.
func (ch *change) writes(sets []string) {
	ch.toWrite = nil
	for _, set := range sets {
		if table, key, ok := takenOut(set); ok {
			set = table + "." + key + "="
		}
		key, value, _ := strings.Cut(set, "=")
		ch.toWrite = append(ch.toWrite, strings.TrimSpace(key)+" = "+strings.TrimSpace(value))
	}
}

// plainlyUsed reports whether a component is the only thing that its plugin is used for.
func plainlyUsed(g *graph.Graph, c *graph.Component) bool {
	for i := range g.Components {
		if g.Components[i].Plugin == c.Plugin && g.Components[i].Name != c.Name {
			return false
		}
	}
	return !slices.ContainsFunc(g.Envs, func(e graph.Env) bool { return e.Table.Plugin != nil && e.Table.Plugin.Name == c.Plugin })
}

// programSets make a plugin's program another one.
func programSets(plugin, file string) []string {
	sets := []string{"plugin." + plugin + ".path=" + graph.Literal(file)}
	if hash, err := files.SHA256(file); err == nil {
		sets = append(sets, "plugin."+plugin+".sha256="+strconv.Quote(hash))
	}
	return sets
}

// freePlugin makes a name for the plugin of a program.
func freePlugin(g *graph.Graph, file string) string {
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = "plugin_" + base
	}
	name := base
	for n := 2; g.Plugin(name) != nil; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// aimAt makes the next graph from overrides of the running one; see withoutSource.
func (ch *change) aimAt(sets ...string) error {
	return ch.aimText(ch.job.Pipeline.Graph().Resolved(), sets)
}

// aimText makes the next graph from a text that Graph.Expanded wrote, and overrides.
func (ch *change) aimText(text string, sets []string) error {
	next, err := parseNext(ch.job.Pipeline.Graph(), text, sets, ch.job.Parts)
	if err != nil {
		return problemError(graph.ProblemsOf(err))
	}
	ch.next = next
	return nil
}

// parseNext reads a text that Expanded wrote of a graph like g, with overrides; see withoutSource.
func parseNext(g *graph.Graph, text string, sets []string, parts *graph.Parts) (*graph.Graph, error) {
	var rest []string
	for _, set := range sets {
		if table, key, ok := takenOut(set); ok {
			text = withoutKey(text, table, key)
			continue
		}
		rest = append(rest, set)
	}
	return graph.Parse(g.File, []byte(text), graph.ParseOptions{Sets: rest, Parts: parts, Dir: g.Dir, Expanded: true})
}

// takenOut returns which key of which component's table an override takes out.
func takenOut(set string) (table, key string, ok bool) {
	path, ok := strings.CutSuffix(set, removed)
	at := strings.LastIndexByte(path, '.')
	if !ok || at < 0 || !strings.HasPrefix(path, "component.") || path[at+1:] != "runtime" && !slices.Contains(graph.SourceKeys, path[at+1:]) {
		return "", "", false
	}
	return path[:at], path[at+1:], true
}

// withoutKey takes a key out of a table of a text that Graph.Expanded wrote.
func withoutKey(text, table, key string) string {
	head := "\n[" + table + "]\n"
	before, rest, ok := strings.Cut(text, head)
	if !ok {
		return text
	}
	body, after, more := strings.Cut(rest, "\n\n")
	lines := slices.DeleteFunc(strings.Split(body, "\n"), func(line string) bool { return strings.HasPrefix(line, key+" = ") })
	text = before + head + strings.Join(lines, "\n")
	if more {
		text += "\n\n" + after
	}
	return text
}

func noSuchFile(file string, builtins []string) error {
	e := &control.Error{Code: "E012", Reason: file + ": no such file", Help: "build it first, or correct the path", Exit: int(Plugin)}
	if !strings.ContainsRune(file, filepath.Separator) {
		e.Reason = fmt.Sprintf("%q is neither a file nor a built-in environment", file)
		e.Help = "built in: " + strings.Join(builtins, ", ")
	}
	return e
}

// isModule reports whether a file is a WebAssembly module, or calls itself one.
func isModule(file string) (bool, error) {
	f, err := files.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var head [4]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return false, err
	}
	return strings.HasSuffix(file, ".wasm") || bytes.Equal(head[:n], []byte("\x00asm")), nil
}

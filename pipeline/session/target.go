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
func (j *Commands) aim(a *ask, file string) error {
	c, err := j.named(a.component)
	if err != nil {
		return err
	}
	if c.Swap == graph.SwapNever {
		return forbidden("component", c.Name)
	}
	g := j.o.Pipeline.Graph()
	env := g.Env(c.Env)
	switch _, _, native := graph.SplitUse(file); {
	case file == "":
		return bad("a swap needs a file")
	case file == runtimeBuiltin, file == runtimeProcess:
		return j.aimAt(a, "component."+c.Name+".plugin = \"\"", "component."+c.Name+".runtime = "+strconv.Quote(file))
	case env == nil:
		return j.aimProgram(a, g, c, file)
	case env.Swap == graph.SwapNever:
		return forbidden("env", env.Name)
	case native, slices.Contains(j.o.Parts.Builtins, file):
		return j.aimEnv(a, env.Name, file)
	}
	return j.aimFile(a, g, env, file)
}

// aimFile is aim for the environments in a file: a module, or a new version of the program that they come from now.
func (j *Commands) aimFile(a *ask, g *graph.Graph, env *graph.Env, file string) error {
	module, err := isModule(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return j.noSuchFile(file)
	case err != nil:
		return &control.Error{Code: "E012", Reason: fmt.Sprintf("%s cannot be read: %v", file, err), Exit: int(Plugin)}
	case module:
		return j.aimModule(a, env, file)
	}
	if p := env.Table.Plugin; p != nil && p.Path != "" && g.Plugin(p.Name) != nil {
		return j.aimAt(a, programSets(p.Name, file)...)
	}
	e := bad("%s is no WebAssembly module", file)
	e.Help = "environments of a native program: declare [plugin.NAME] and swap to NAME:ENVIRONMENT"
	e.Exit = int(Plugin)
	return e
}

// aimModule stores a module and aims at the copy, which nobody changes.
func (j *Commands) aimModule(a *ask, env *graph.Env, file string) error {
	m, err := j.o.Run.Store(file)
	if err != nil {
		return err
	}
	a.modules = append(a.modules, m)
	j.mu.Lock()
	j.names[m.Hash] = file
	j.mu.Unlock()
	if j.runsModule(env, m.Hash) {
		a.next = j.o.Pipeline.Graph() // whatever its file is called
		return nil
	}
	return j.aimEnv(a, env.Name, m.Path)
}

// runsModule reports whether an environment is that module already.
func (j *Commands) runsModule(env *graph.Env, hash string) bool {
	if env.Table.Plugin != nil {
		return false
	}
	plugin, err := j.o.Pipeline.Env(env.Name)
	return err == nil && plugin.Hash() == hash
}

func (j *Commands) aimEnv(a *ask, env, use string) error {
	return j.aimAt(a, "env."+env+".use="+strconv.Quote(use), "env."+env+".sha256=\"\"")
}

// aimProgram is aim for a component made by a native program: one that is declared, or the path of one.
func (j *Commands) aimProgram(a *ask, g *graph.Graph, c *graph.Component, file string) error {
	if g.Plugin(file) != nil {
		return j.aimAt(a, "component."+c.Name+".runtime=process", "component."+c.Name+".plugin="+strconv.Quote(file))
	}
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return j.noSuchFile(file)
	case err != nil:
		return &control.Error{Code: "E012", Reason: fmt.Sprintf("%s cannot be read: %v", file, err), Exit: int(Plugin)}
	case info.IsDir():
		return bad("%s is a folder", file)
	}
	if c.Plugin != "" && plainlyUsed(g, c) {
		return j.aimAt(a, programSets(c.Plugin, file)...)
	}
	name := freePlugin(g, file)
	sets := append(programSets(name, file), "component."+c.Name+".runtime=process", "component."+c.Name+".plugin="+strconv.Quote(name))
	return j.aimAt(a, sets...)
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
	sets := []string{"plugin." + plugin + ".path=" + strconv.Quote(file)}
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

// aimAt makes the next graph from overrides of the running one. An empty plugin of a component is none.
func (j *Commands) aimAt(a *ask, sets ...string) error {
	g := j.o.Pipeline.Graph()
	text := g.Expanded()
	var rest []string
	for _, set := range sets {
		if table, ok := strings.CutSuffix(set, ".plugin = \"\""); ok {
			text = withoutKey(text, table, "plugin")
			continue
		}
		rest = append(rest, set)
	}
	next, problems := graph.Parse(g.File, []byte(text), graph.ParseOptions{Sets: rest, Parts: j.o.Parts, Dir: g.Dir})
	if next == nil {
		return j.problemError(problems)
	}
	a.next = next
	return nil
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

func (j *Commands) noSuchFile(file string) error {
	e := &control.Error{Code: "E012", Reason: file + ": no such file", Help: "build it first, or correct the path", Exit: int(Plugin)}
	if !strings.ContainsRune(file, filepath.Separator) {
		e.Reason = fmt.Sprintf("%q is neither a file nor a built-in environment", file)
		e.Help = "built in: " + strings.Join(j.o.Parts.Builtins, ", ")
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

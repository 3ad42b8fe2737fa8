package member

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Programs says which native plugins of a run may run on this host. Programs do not travel: a host has its own. The zero value allows none.
type Programs struct {
	All    bool     // at the paths that the run names; relative ones begin at the working folder
	SHA256 []string // of single programs or scripts, in hexadecimal
}

// consent is what a host's owner allows a run.
type consent struct {
	parts    *graph.Parts
	programs Programs
	own      *sent
}

// CodeProgram is the code of native plugins that a host does not allow or does not have; rlhost explain has its page.
const CodeProgram control.Code = "R022"

// readPrograms returns the digests of a graph's native plugins, by their names, and of scripts next to its file that environments are made of, by
// the environments' names with env. before them.
func readPrograms(g *graph.Graph, parts *graph.Parts) map[string]string {
	digests := map[string]string{}
	for i := range g.Plugins {
		if t := &g.Plugins[i].Table; !belongs(t, parts) {
			digests[t.Name] = t.Digest(g.Dir)
		}
	}
	for i := range g.Envs {
		if e := &g.Envs[i]; e.Table.Plugin != nil {
			digests["env."+e.Name] = e.Table.ScriptsDigest(g.Dir)
		}
	}
	return digests
}

// belongs reports whether a plugin is this program itself, or one of the programs that come with it.
func belongs(t *graph.PluginTable, parts *graph.Parts) bool {
	known, ok := parts.PolicyPlugins[t.Name]
	return same(t, graph.DefaultPlugin()) || ok && same(t, known)
}

// same reports whether a table is that of a known plugin, whatever its name and its place.
func same(t *graph.PluginTable, known graph.PluginTable) bool {
	known.Name, known.Place = t.Name, t.Place
	return reflect.DeepEqual(*t, known)
}

// program returns why a native plugin may not run here, and otherwise its table with the SHA-256 that its file must have.
func (c *consent) program(t *graph.PluginTable) (*graph.PluginTable, error) {
	if belongs(t, c.parts) {
		return t, nil
	}
	if of, ok := c.parts.EnvPlugins[t.Name]; ok && same(t, of) {
		if !c.programs.All {
			return nil, refuse("join with --allow-native, which lets this run start any of this host's programs", "the run has environments of Python, %s:…, which may import what this host has", t.Name)
		}
		return t, nil
	}
	want, named := c.own.program(t.Name)
	file := t.File("")
	sum, err := files.SHA256(file)
	switch {
	case !named:
		return nil, refuse("resume the run", "the run has not said which program its plugin %.80q is", t.Name)
	case err != nil:
		return nil, refuse("put the same program there; a relative path begins at the folder in which rlhost join is started, a name is looked for in PATH",
			"the program of plugin %q is not on this host: %.200s", t.Name, t.Path)
	case !c.programs.All && !slices.Contains(c.programs.SHA256, sum):
		return nil, refuse(fmt.Sprintf("join with --allow sha256:%s, or with --allow-native for all programs that this run names", sum),
			"the program of plugin %q, %s, may not run on this host", t.Name, file)
	case !c.programs.All && !slices.Contains(interpreters, fmt.Sprint(t.Interpreter)):
		return nil, refuse("join with --allow-native, or leave interpreter out of the pipeline", "plugin %q is run by %.80q, and only its script is allowed on this host", t.Name, t.Interpreter)
	case t.Digest("") != want:
		return nil, refuse("copy the program, and the scripts of Python in its folder, from the run's host",
			"the program of plugin %q is another one on this host, or a script of Python next to it is: %s has the SHA-256 %s", t.Name, file, sum)
	}
	own := *t
	own.SHA256 = sum // nobody exchanges it meanwhile
	return &own, nil
}

// interpreters are what may run a script that is allowed by its SHA-256.
var interpreters = []string{"[]", "[python3]", "[python3 -u]"}

// scripts returns why the scripts of an environment of Python are not the run's.
func (c *consent) scripts(name string, t *graph.EnvTable) error {
	if want, named := c.own.program("env." + name); !named || t.ScriptsDigest("") != want {
		return refuse("copy the scripts from the run's host to the folder in which rlhost join is started",
			"the scripts of Python of env %q are others on this host, or are not in its working folder", name)
	}
	return nil
}

func refuse(help, reason string, args ...any) error {
	e := control.Errorf(CodeProgram, reason, args...)
	e.Help = help
	return e
}

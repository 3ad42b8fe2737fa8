package graph

import (
	"path/filepath"
	"time"

	"github.com/rlhost/rlhost/core/files"
)

// buildKeys say how the file that a table names is made from its sources.
type buildKeys struct {
	Build        string        `toml:"build" doc:"Command that builds it from its sources: a line of sh, in the folder of this file. [rlhost dev](../how-to/dev.md) runs it." default:"none"`
	BuildTimeout time.Duration `toml:"build_timeout" doc:"Longest time of a build: what takes longer is killed." range:"above 0"`
}

// buildKeyNames are the keys of buildKeys.
var buildKeyNames = []string{"build", "build_timeout"}

func defaultBuild() buildKeys { return buildKeys{BuildTimeout: 2 * time.Minute} }

// Build says how one file of a pipeline is made.
type Build struct {
	Of      string        // env.maze, component.shaper, plugin.mine
	Command string        // a line of sh; empty: nobody has said how
	Timeout time.Duration // longest time of it
	Output  string        // absolute path of what it makes; empty where the table names no file
	At      Span          // of the command, or of the path where there is none
}

// Builds returns how the modules and programs of a file are made, in its order. It reads only that, also of files that the file
// extends, and starts nothing, so that a file can be read before what it names is there. Errors in other keys are left for Parse.
func Builds(file string, src []byte) ([]Build, Problems) {
	c := newChecker(file, ParseOptions{})
	c.root = (&fileReader{c}).readFile(file, src)
	if c.root == nil {
		return nil, c.Sorted()
	}
	c.shapes(c.root)
	var list []Build
	for _, section := range []string{"env", "component", "plugin"} {
		for _, t := range c.named(section) {
			if b, ok := (&buildReader{c}).read(section, t); ok {
				list = append(list, b)
			}
		}
	}
	if c.failed(0) {
		return nil, c.Sorted()
	}
	return list, nil
}

// buildReader reads the keys of builds.
type buildReader struct{ check *checker }

// read reads them of one table; ok is false where it names nothing that could be built.
func (r *buildReader) read(section string, t namedTable) (b Build, ok bool) {
	path, keys := section+"."+t.name, defaultBuild()
	d := &tableDecoder{report: &r.check.Report, n: t.node.only(buildKeyNames), path: path}
	d.decode(&keys) // errors have been noted
	r.checkKeys(section, t.node, path, &keys)
	b = Build{Of: path, Command: keys.Build, Timeout: keys.BuildTimeout, At: t.node.key}
	if n := t.node.at("build"); n != nil {
		b.At = n.val
	}
	if file := madeFile(section, t.node); file != "" {
		b.Output, _ = filepath.Abs(files.In(r.check.graph.Dir, file)) // it fails without a working folder, where nothing works
	}
	return b, b.Command != "" || b.Output != ""
}

// madeFile is the path of the module or program that a table names, or empty.
func madeFile(section string, n *node) string {
	if section == "plugin" {
		path, _ := n.at("path").text()
		return path
	}
	use, _ := n.at("use").text()
	if _, _, native := SplitUse(use); native || !isPath(use) {
		return ""
	}
	return use
}

// checkKeys checks them.
func (r *buildReader) checkKeys(section string, n *node, path string, b *buildKeys) {
	build, limit := n.at("build"), n.at("build_timeout")
	if _, ok := build.text(); ok && b.Build == "" {
		r.check.Add("E005", build.val, `write a command, such as build = "make", or leave the key out`, "`build` is empty")
	}
	if limit != nil && b.BuildTimeout <= 0 {
		r.check.Add("E005", limit.val, "", "`build_timeout` is %v, must be above 0", b.BuildTimeout)
	}
	if limit != nil && build == nil {
		r.check.Add("E005", limit.key, "add `build`, or leave it out", "`build_timeout` in [%s], which has no `build`", path)
	}
	if section != "plugin" && build != nil && madeFile(section, n) == "" {
		r.check.Add("E005", build.key, "leave it out, or name the file in `use`; a program is built by `build` in its [plugin] table",
			"`build` in [%s], which names no file that could be built", path)
	}
}

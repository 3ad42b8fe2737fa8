package graph

import (
	"slices"

	"github.com/rlhost/rlhost/core/table"
)

// StandardInput is the file of a pipeline that was read from standard input. Its relative paths start at the working directory.
const StandardInput = "<stdin>"

// Parse reads and checks a pipeline without loading anything but an environment whose preset has to suit it. file is only used for messages and as the base of relative paths; files that it
// extends are read. The error is of type Problems: all errors, found in one pass, and all warnings. A graph has its warnings.
func Parse(file string, src []byte, o ParseOptions) (*Graph, error) {
	g, problems := parse(file, src, o)
	if g == nil {
		return nil, problems
	}
	g.Warnings = problems
	return g, nil
}

// parse reads a file twice where its preset has other settings for its environment.
func parse(file string, src []byte, o ParseOptions) (*Graph, Problems) {
	c := newChecker(file, o)
	g, problems := c.parse(file, src, o)
	next, again := c.choosing.suits(c)
	if !again {
		return g, problems
	}
	c = newChecker(file, o)
	c.choosing = next
	return c.parse(file, src, o)
}

func (c *checker) parse(file string, src []byte, o ParseOptions) (*Graph, Problems) {
	root := (&fileReader{c}).readFile(file, src)
	sets := (&setReader{c}).readSets(o.Sets)
	if root == nil {
		return nil, c.Sorted()
	}
	c.topLevel(root)
	root = c.expand(root, sets)
	c.root = root
	c.graph.sweep = root.at("sweep")
	c.runTable()
	c.swapTable()
	(&placeReader{c}).clusterTable()
	c.pluginTables()
	(&envReader{c}).envTables()
	c.policyTables()
	(&placeReader{c}).groupTables()
	c.componentTables()
	(&askReader{check: c}).askTables()
	(&scheduler{c}).outlasted()
	(&wireReader{c}).wireTables()
	(&placeReader{c}).wires()
	(&actingChecker{check: c, gathering: map[string]bool{}}).acting()
	if !c.failed(0) {
		(&flowChecker{c}).flow()
	}
	if !c.failed(0) {
		(&idleChecker{c}).endless()
		(&idleChecker{c}).policies()
		(&idleChecker{c}).unread()
		(&idleChecker{c}).unrecorded()
		c.unwired()
		c.sharedQueues()
	}
	if c.failed(0) {
		return nil, c.Sorted()
	}
	c.placeOnLoops()
	(&placeReader{c}).loops()
	(&placeReader{c}).slow()
	(&placeReader{c}).apart()
	if c.failed(0) {
		return nil, c.Sorted()
	}
	return c.graph, c.Sorted()
}

// topLevel checks the keys of the file itself. Sections of a wrong type are taken out.
func (k *checker) topLevel(root *node) {
	known := append(sectionNames(), extendsKey)
	k.shapes(root)
	for _, name := range slices.Clone(root.names) {
		if slices.Contains(known, name) {
			continue
		}
		n := root.table[name]
		k.Add("E002", n.key, table.MeantKey(name, known), "unknown key `%s`", name)
		root.remove(name)
		if near, ok := table.Nearest(name, known); ok && root.at(near) == nil {
			k.bad[near] = true // it is there, under a wrong name
		}
	}
	if k.bad["train"] {
		k.noPreset()
	}
}

// shapes checks that the sections are tables and lists of tables, and takes out others.
func (k *checker) shapes(root *node) {
	for _, s := range sections {
		n := root.at(s.name)
		if n == nil || n.kind == s.kind && allTables(n) {
			continue
		}
		k.wrong(n, s.name, s.want, "")
		k.bad[s.name] = true
		root.remove(s.name)
	}
}

// format checks the version of a file's format.
func (k *checker) format(root *node) {
	n := root.at("rlhost")
	if n == nil {
		k.Add("E007", Span{root.key.src, 0, 0}, "write rlhost = 1 in the first line", "the format version is missing")
		return
	}
	version, ok := n.value.(int64)
	switch {
	case !ok:
		k.wrong(n, "rlhost", "an integer", "write rlhost = 1")
		root.remove("rlhost")
	case version > formatVersion:
		k.Add("E007", n.val, "a newer rlhost reads it", "format version %d, this rlhost reads %d", version, formatVersion)
	case version < 1:
		k.Add("E007", n.val, "write rlhost = 1", "format version %d does not exist", version)
	}
}

// RunDir returns run.dir of a file. It reads the table [run], also of files that the file extends, and nothing else, so it needs no Parts and starts nothing. Errors there
// are among the problems, and the folder is then empty. file is only used for messages. A file without that key has the default.
func RunDir(file string, src []byte) (string, Problems) {
	c := newChecker(file, ParseOptions{})
	c.root = (&fileReader{c}).readFile(file, src)
	if c.root == nil {
		return "", c.Sorted()
	}
	if n := c.root.at("run"); n != nil && n.kind != tableNode {
		c.wrong(n, "run", "a table: [run]", "")
	} else {
		c.runTable()
	}
	if c.failed(0) {
		return "", c.Sorted()
	}
	return c.graph.Run.Dir, c.Sorted()
}

// With returns the graph with overrides as in --set, checked like a file; see Parse.
func (g *Graph) With(sets []string, parts *Parts) (*Graph, error) {
	return Parse(g.File, []byte(g.Resolved()), ParseOptions{Sets: sets, Parts: parts, Dir: g.Dir, Expanded: true})
}

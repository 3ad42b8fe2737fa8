package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/search"
)

// Sweep reads the table [sweep] of the file, strictly, and checks that the pipeline takes the values of the space: sets are the overrides
// that the file was read with, and parse reads it again with others. It returns nil where there is no such table. The error is of type
// Problems.
func (g *Graph) Sweep(sets []string, parse func(sets []string) error) (*search.Config, error) {
	if g.sweep == nil {
		return nil, nil
	}
	r := &sweepReader{Report{File: g.File}, g.sweep}
	c := search.Default()
	r.quoted(g.sweep.at("space"))
	d := &tableDecoder{report: &r.Report, n: g.sweep, path: "sweep"}
	d.decode(&c) // errors have been noted
	if !r.failed(0) {
		r.note(c.Complete(g.Run.Stop.EnvSteps))
	}
	r.given(&c, sets)
	if !r.failed(0) {
		r.try(&c, sets, parse)
	}
	if r.failed(0) {
		return nil, r.Sorted()
	}
	return &c, nil
}

// sweepReader reads [sweep].
type sweepReader struct {
	Report
	table *node
}

// quoted finds keys of the space that lack their quotes, and are tables in tables.
func (r *sweepReader) quoted(space *node) {
	if space == nil || space.kind != tableNode {
		return
	}
	known := table.Keys(&search.Dim{})
	for _, name := range slices.Clone(space.names) {
		n := space.table[name]
		path := []string{name}
		for n.kind == tableNode && len(n.names) > 0 && !slices.ContainsFunc(n.names, func(k string) bool { return slices.Contains(known, k) }) {
			path = append(path, n.names[0])
			n = n.table[n.names[0]]
		}
		if len(path) > 1 {
			r.Add(table.CodeRange, space.table[name].key, fmt.Sprintf("write %q = { … }", strings.Join(path, ".")), "a key of the space stands without quotes")
			space.remove(name)
		}
	}
}

// note adds the errors of the table's values.
func (r *sweepReader) note(err error) {
	for _, e := range table.All(err) {
		n, path := lookup(r.table, e.Key), "sweep."+e.Key
		if e.Table == "space" {
			n, path = r.table.at("space").at(e.Key), "sweep.space."+quote(e.Key)
		}
		at := r.table.key
		if n != nil {
			at = n.val
		}
		r.Add(e.Code, at, e.Help, "`%s` %s", path, e.Reason)
	}
}

// given finds keys of the space that an override has too.
func (r *sweepReader) given(c *search.Config, sets []string) {
	for _, set := range sets {
		key, _, _ := strings.Cut(set, "=")
		if n := r.table.at("space").at(strings.TrimSpace(key)); n != nil {
			r.Add("E008", n.key, "take it out of either", "`%s` is searched, and --set gives it a value", strings.TrimSpace(key))
		}
	}
}

// try reads the file with points of the space, in which each key has its ends or all of its choices once.
func (r *sweepReader) try(c *search.Config, sets []string, parse func(sets []string) error) {
	keys := c.Keys()
	told := map[string]bool{}
	for _, p := range c.Corners() {
		for _, problem := range ProblemsOf(parse(slices.Concat(sets, p.Sets()))) {
			if problem.Severity == Warning {
				continue
			}
			at, with := r.table.at("space").key, strings.Join(p.Sets(), ", ")
			if i := problem.Line - 1 - len(sets); problem.File == "--set" && i >= 0 && i < len(keys) {
				at, with = r.table.at("space").at(keys[i]).key, p.Sets()[i]
			}
			if text := fmt.Sprint(at.off, problem.Code); !told[text] {
				told[text] = true
				r.Add(problem.Code, at, problem.Help, "with %s: %s", with, problem.Message)
			}
		}
	}
}

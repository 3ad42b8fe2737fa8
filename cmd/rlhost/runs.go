package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/tabwriter"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/compare"
	"github.com/rlhost/rlhost/pipeline/curves"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/runner"
)

type runsCommand struct {
	Ls   runsListCommand   `cmd:"" default:"withargs" help:"List runs."`
	Show runsShowCommand   `cmd:"" help:"Show one run: what it came to, its curve, its checkpoints."`
	Diff runsDiffCommand   `cmd:"" help:"Show the keys in which the pipelines of runs differ."`
	Rm   runsRemoveCommand `cmd:"" help:"Remove runs or sets of seeds."`
	Gc   runsSweepCommand  `cmd:"" help:"Remove runs that left nothing, or all but the newest."`
}

type runsListCommand struct {
	Where []string `arg:"" optional:"" help:"Conditions, such as env=cartpole@1, state=ended, return>=475 or component.learner.epochs=4."`
	runsFlag
	GroupBy string   `placeholder:"KEY" help:"A line for each value of a column or of a pipeline's key, with the mean return over its runs, its interval and the interquartile mean."`
	Columns []string `placeholder:"KEY" help:"Columns to show besides the usual ones: keys of pipelines."`
	As      string   `name:"as" enum:"table,csv,json,rliable" default:"table" help:"table, csv, json, or rliable: {group: [[score of run 1 for each task]…]}."`
}

// Run lists.
func (c *runsListCommand) Run(p *program) error {
	list, err := compare.List(c.dir())
	if err != nil {
		return err
	}
	if list, err = compare.Where(list, c.Where); err != nil {
		return fail(exitUsage, err)
	}
	if c.GroupBy != "" || c.As == "rliable" {
		return c.groups(p, list)
	}
	rows, err := compare.Rows(list, append(compare.Columns(), c.Columns...))
	if err != nil || c.As != "table" {
		return p.also(err, p.rows(rows, c.As))
	}
	sets, err := runs.Sets(c.dir())
	if err = errors.Join(p.table(rows), err); err != nil || len(sets) == 0 || len(c.Where) > 0 {
		return err
	}
	fmt.Fprintln(p.out)
	return p.table(compare.SetRows(sets))
}

func (c *runsListCommand) groups(p *program, list []*compare.Run) error {
	groups, err := compare.By(list, cmp.Or(c.GroupBy, "env"))
	if err != nil {
		return err
	}
	if c.As != "rliable" {
		return p.rows(compare.GroupRows(c.GroupBy, groups), c.As)
	}
	all := map[string][][]float64{}
	for _, g := range groups {
		_, scores, _ := compare.Scores(g.Runs)
		all[g.Value] = compare.Matrix(scores)
	}
	return p.encode(all)
}

// rows prints rows under a head in a form.
func (p *program) rows(rows [][]string, form string) error {
	switch form {
	case "csv":
		return csv.NewWriter(p.out).WriteAll(rows)
	case "json":
		for _, row := range rows[1:] {
			o := map[string]string{}
			for i, cell := range row {
				o[rows[0][i]] = cell
			}
			if err := p.encode(o); err != nil {
				return err
			}
		}
		return nil
	}
	return p.table(rows)
}

func (p *program) table(rows [][]string) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			row[i] = cmp.Or(cell, "-")
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

type runsShowCommand struct {
	RunID string `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name, cartpole/7, or latest."`
	runsFlag
}

// Run shows one run.
func (c *runsShowCommand) Run(p *program) error {
	run, err := c.find(c.RunID)
	if err != nil {
		return err
	}
	rows, err := compare.Facts(&compare.Run{Dir: run.Dir, Info: run.Info()}, run.Checkpoints())
	if err != nil {
		return err
	}
	if curve, unreadable, err := curves.Read(run.Dir, defaultMetric, curves.EnvSteps); err == nil {
		rows = append(rows, []string{"curve", curves.Sparkline(curve.Y, 60)})
		if unreadable > 0 {
			p.notice("%s: %s cannot be read and left out", runner.MetricsFile, text.Count(unreadable, "line"))
		}
	}
	return p.table(rows)
}

type runsDiffCommand struct {
	RunIDs []string `arg:"" name:"run" help:"Runs or sets, two at least."`
	runsFlag
}

// Run shows the keys that differ, a column for each word, and how two sets compare.
func (c *runsDiffCommand) Run(p *program) error {
	if len(c.RunIDs) < 2 {
		return fail(exitUsage, errors.New("diff compares two runs or more"))
	}
	groups, err := c.each(c.RunIDs)
	if err != nil {
		return err
	}
	if len(groups) == 2 {
		lines, err := compare.Improvement(groups[0], groups[1])
		if err != nil {
			return fail(exitUsage, err)
		}
		if lines != "" {
			fmt.Fprintln(p.out, lines)
		}
	}
	rows, err := compare.DifferenceRows(groups)
	if err != nil {
		return err
	}
	return p.table(rows)
}

// each returns the runs that each word stands for.
func (f *runsFlag) each(which []string) ([]compare.Group, error) {
	var groups []compare.Group
	for _, w := range which {
		list, err := compare.Find(f.dir(), w)
		if errors.Is(err, runs.ErrNotFound) || err == nil && len(list) == 0 {
			return nil, fail(exitUsage, cmp.Or(err, fmt.Errorf("set %s has no runs yet", w)))
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, compare.Group{Value: w, Runs: list})
	}
	return groups, nil
}

type runsRemoveCommand struct {
	RunIDs []string `arg:"" name:"run" help:"Runs as NAME/NUMBER or folders, or sets of seeds."`
	runsFlag
}

// Run removes, after all of them were found.
func (c *runsRemoveCommand) Run(p *program) error {
	var found []removable
	for _, which := range c.RunIDs {
		if !strings.ContainsRune(which, '/') {
			return fail(exitUsage, fmt.Errorf("%q could mean several runs: name one, as in %s/1", which, which))
		}
		set, err := runs.OpenSet(c.dir(), which)
		if err == nil {
			found = append(found, removable{set.ID(), set.Dir, set.Remove})
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		run, err := c.find(which)
		if err != nil {
			return err
		}
		found = append(found, removable{run.ID(), run.Dir, run.Remove})
	}
	return p.remove(found)
}

// removable is a run or a set.
type removable struct {
	id, dir string
	remove  func() error
}

func (p *program) remove(list []removable) error {
	for _, r := range list {
		bytes := runs.Bytes(r.dir)
		if err := r.remove(); err != nil {
			return err
		}
		fmt.Fprintf(p.out, "removed %s (%d bytes)\n", r.id, bytes)
	}
	return nil
}

type runsSweepCommand struct {
	runsFlag
	Keep   int  `default:"0" placeholder:"N" help:"Of each name, remove all but the N newest runs; 0 removes only runs that ended without a checkpoint."`
	Delete bool `help:"Remove them; without this they are only listed."`
}

// Run lists or removes.
func (c *runsSweepCommand) Run(p *program) error {
	idle, err := compare.Idle(c.dir(), c.Keep)
	if err != nil {
		return err
	}
	var going []removable
	for _, run := range idle {
		going = append(going, removable{run.ID(), run.Dir, run.Remove})
	}
	if c.Delete {
		return p.remove(going)
	}
	for _, r := range going {
		fmt.Fprintf(p.out, "%s (%d bytes)\n", r.id, runs.Bytes(r.dir))
	}
	if len(going) > 0 {
		p.notice("to remove %s: rlhost runs gc --delete", text.Count(len(going), "run"))
	}
	return nil
}

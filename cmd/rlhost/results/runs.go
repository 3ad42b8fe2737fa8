package results

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/compare"
	"github.com/rlhost/rlhost/pipeline/curves"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/runner"
)

// Runs lists, shows, compares and removes runs.
type Runs struct {
	Ls       List     `cmd:"" default:"withargs" help:"List runs."`
	Show     Show     `cmd:"" help:"Show one run: its result, its curve, its checkpoints."`
	Diff     Diff     `cmd:"" help:"Show the keys in which the pipelines of runs differ."`
	Episodes Episodes `cmd:"" help:"List episodes of a run: the newest, the best or the worst."`
	Rm       Remove   `cmd:"" help:"Remove runs or sets of seeds."`
	Gc       Sweep    `cmd:"" help:"Remove runs that left nothing, or all but the newest."`
}

// List lists runs.
type List struct {
	Where []string `arg:"" optional:"" help:"Conditions, such as env=cartpole@1, state=ended, eval_return>=475 or component.learner.epochs=4."`
	Folder
	GroupBy string   `placeholder:"KEY" help:"A line for each value of a column or of a pipeline's key, with the mean return over its runs, its interval and the interquartile mean."`
	Columns []string `placeholder:"KEY" help:"Columns to show besides the usual ones: keys of pipelines."`
	As      string   `name:"as" enum:"table,csv,json,rliable" default:"table" help:"table, csv, json, or rliable: {group: [[score of run 1 for each task]…]}."`
}

// Run lists.
func (c *List) Run(p *Program) error {
	list, err := compare.List(c.Dir())
	if err != nil {
		return err
	}
	if list, err = compare.Where(list, c.Where); err != nil {
		return usage(err)
	}
	if c.GroupBy != "" || c.As == "rliable" {
		return c.groups(p, list)
	}
	rows, err := compare.Rows(list, append(compare.Columns(), c.Columns...))
	if err != nil || c.As != "table" {
		return errors.Join(err, p.rows(rows, c.As))
	}
	sets, err := runs.Sets(c.Dir())
	if err = errors.Join(p.Table(compare.Round(rows)), err); err != nil || len(sets) == 0 || len(c.Where) > 0 {
		return err
	}
	p.printf("\n")
	return p.Table(compare.SetRows(sets))
}

func (c *List) groups(p *Program, list []*compare.Run) error {
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

// Show shows one run.
type Show struct {
	RunID string `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name, cartpole/7, or latest."`
	Folder
}

// Run shows one run.
func (c *Show) Run(p *Program) error {
	run, err := c.Find(c.RunID)
	if err != nil {
		return err
	}
	rows, err := compare.Facts(&compare.Run{Dir: run.Dir, Info: run.Info()}, run.Checkpoints())
	if err != nil {
		return err
	}
	switch curve, unreadable, err := curves.Read(run.Dir, defaultMetric, curves.EnvSteps); {
	case err == nil:
		rows = append(rows, []string{"curve", curves.Sparkline(curve.Y, 60)})
		if unreadable > 0 {
			p.Notice("%s: %s cannot be read and left out", runner.MetricsFile, text.Count(unreadable, "line"))
		}
	case !errors.Is(err, curves.ErrNoMetric) && !errors.Is(err, fs.ErrNotExist):
		p.Notice("without its curve: %v", err)
	}
	return p.Table(rows)
}

// Diff compares runs.
type Diff struct {
	RunIDs []string `arg:"" name:"run" help:"Runs or sets, two at least."`
	Folder
}

// Run shows the keys that differ, a column for each word, and how two sets compare.
func (c *Diff) Run(p *Program) error {
	if len(c.RunIDs) < 2 {
		return usage(errors.New("diff compares two runs or more"))
	}
	groups, err := c.Each(c.RunIDs)
	if err != nil {
		return err
	}
	if len(groups) == 2 {
		lines, err := compare.Improvement(groups[0], groups[1])
		if err != nil {
			return usage(err)
		}
		if lines != "" {
			p.printf("%s\n", lines)
		}
	}
	rows, err := compare.DifferenceRows(groups)
	if err != nil {
		return err
	}
	return p.Table(rows)
}

// Each returns the runs that each word names.
func (f *Folder) Each(which []string) ([]compare.Group, error) {
	var groups []compare.Group
	for _, w := range which {
		list, err := compare.Find(f.Dir(), w)
		if errors.Is(err, runs.ErrNotFound) || err == nil && len(list) == 0 {
			return nil, usage(cmp.Or(err, fmt.Errorf("set %s has no runs yet", w)))
		}
		if err != nil {
			return nil, err
		}
		groups = append(groups, compare.Group{Value: w, Runs: list})
	}
	return groups, nil
}

// Remove removes runs and sets of seeds.
type Remove struct {
	RunIDs []string `arg:"" name:"run" help:"Runs as NAME/NUMBER or folders, or sets of seeds."`
	Folder
}

// Run removes, after all of them were found.
func (c *Remove) Run(p *Program) error {
	var found []removable
	for _, which := range c.RunIDs {
		if !strings.ContainsRune(which, '/') {
			return usage(fmt.Errorf("%q could mean several runs: name one, as in %s/1", which, which))
		}
		set, err := runs.OpenSet(c.Dir(), which)
		if err == nil {
			found = append(found, removable{set.ID(), set.Dir, set.Remove})
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		run, err := c.Find(which)
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

func (p *Program) remove(list []removable) error {
	for _, r := range list {
		bytes := runs.Bytes(r.dir)
		if err := r.remove(); err != nil {
			return err
		}
		p.printf("removed %s (%d bytes)\n", r.id, bytes)
	}
	return nil
}

// Sweep removes runs that are not needed.
type Sweep struct {
	Folder
	Keep   int        `default:"0" placeholder:"N" help:"Of each name, remove all but the N newest runs; 0 removes only runs that ended without a checkpoint."`
	Most   table.Size `placeholder:"SIZE" help:"Remove the oldest runs too, until those that are left take no more than this, such as 20GiB."`
	Delete bool       `help:"Remove them; without this they are only listed."`
}

// Run lists or removes.
func (c *Sweep) Run(p *Program) error {
	idle, err := compare.Idle(c.Dir(), c.Keep, int64(c.Most))
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
	all := int64(0)
	for _, r := range going {
		bytes := runs.Bytes(r.dir)
		all += bytes
		p.printf("%s (%d bytes)\n", r.id, bytes)
	}
	if len(going) > 0 {
		p.Notice("to remove %s, %d bytes: rlhost runs gc --delete", text.Count(len(going), "run"), all)
	}
	return nil
}

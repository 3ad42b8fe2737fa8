package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
	"github.com/rlhost/rlhost/pipeline/trials"
)

// FindSweep opens the set of a search for reading.
func FindSweep(f *Folder, which string) (*runs.Set, error) {
	set, err := runs.OpenSet(f.Dir(), which)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usage(fmt.Errorf("%s is no set: name one such as cartpole/4; rlhost runs lists them", which))
	}
	if err != nil {
		return nil, err
	}
	if _, err := trials.Read(set); errors.Is(err, trials.ErrNoSweep) {
		return nil, usage(fmt.Errorf("%w: rlhost train --resume goes on with it", err))
	} else if err != nil {
		return nil, err
	}
	return set, nil
}

// sweep is a search that has been read.
type sweep struct {
	set     *runs.Set
	config  *search.Config
	history *search.History
}

func readSweep(f *Folder, which string) (*sweep, error) {
	set, err := FindSweep(f, which)
	if err != nil {
		return nil, err
	}
	s, err := trials.Read(set)
	if err != nil {
		return nil, err
	}
	h, err := trials.History(set, &s.Config)
	return &sweep{set, &s.Config, h}, err
}

// Trials lists the trials of a search.
type Trials struct {
	Sweep string `arg:"" name:"set" help:"Search: a folder, or a name such as cartpole/4."`
	Folder
	As string `name:"as" enum:"table,csv,json" default:"table" help:"table, csv or json."`
}

// Run lists them.
func (c *Trials) Run(p *Program) error {
	s, err := readSweep(&c.Folder, c.Sweep)
	if err != nil {
		return err
	}
	rows := trials.Rows(s.history, s.config)
	switch c.As {
	case "json":
		for _, r := range rows {
			if err := p.encode(r); err != nil {
				return err
			}
		}
		return nil
	case "csv":
		return p.rows(trials.Cells(rows, s.config), "csv")
	}
	if err := p.Table(trials.Cells(rows, s.config)); err != nil {
		return err
	}
	p.printf("\n%s", trials.Conclude(s.set, s.history, s.config, 0).Text())
	return nil
}

// BestKeys writes a pipeline file with the values of a search's best trial.
type BestKeys struct {
	Sweep string `arg:"" name:"set" help:"Search: a folder, or a name such as cartpole/4."`
	Folder
	Trial  *int   `placeholder:"N" help:"Take this trial; default the best confirmed one, else the best of the search."`
	Output string `short:"o" name:"output" placeholder:"FILE" help:"File to write; default standard output."`
}

// Run writes it.
func (c *BestKeys) Run(p *Program) error {
	s, err := readSweep(&c.Folder, c.Sweep)
	if err != nil {
		return err
	}
	point, err := s.best(c.Trial)
	if err != nil {
		return usage(err)
	}
	text, err := p.withKeys(s.set, point)
	if err != nil {
		return err
	}
	if c.Output == "" {
		p.printf("%s", text)
		return nil
	}
	return write(c.Output, text)
}

// best is the point of a trial, or of the best one.
func (s *sweep) best(number *int) (search.Point, error) {
	if number != nil {
		if *number < 0 || *number >= len(s.history.Trials) {
			return nil, fmt.Errorf("%s has no trial %d: it has %d", s.set.ID(), *number, len(s.history.Trials))
		}
		return s.history.Trials[*number].Set, nil
	}
	found := trials.Find(s.history, s.config)
	if len(found.Confirmed) > 0 && len(found.Confirmed[0].Values) > 0 {
		return found.Confirmed[0].Set, nil
	}
	if found.Best == nil {
		return nil, fmt.Errorf("%s has no trial with a value yet", s.set.ID())
	}
	return found.Best.Set, nil
}

// AddPoint adds a point to a search.
type AddPoint struct {
	Sweep string `arg:"" name:"set" help:"Search: a folder, or a name such as cartpole/4."`
	Point string `arg:"" help:"Values as JSON: {\"component.learner.learning_rate\": 3e-4}."`
	Folder
}

// Run adds it.
func (c *AddPoint) Run(p *Program) error {
	set, err := FindSweep(&c.Folder, c.Sweep)
	if err != nil {
		return err
	}
	var point search.Point
	if err := json.Unmarshal([]byte(c.Point), &point); err != nil {
		return usage(fmt.Errorf("%q is no point: %w; write it as '{\"component.learner.learning_rate\": 3e-4}'", c.Point, err))
	}
	s, err := trials.Read(set)
	if err != nil {
		return err
	}
	if err := s.Config.Check(point); err != nil {
		return usage(fmt.Errorf("%s does not search there: %w", set.ID(), err))
	}
	if err := trials.Add(set, point); err != nil {
		return err
	}
	p.Notice("to try it: rlhost sweep --resume %s", set.Dir)
	return nil
}

// withKeys is the file of a search with the values of a point and the overrides that the search was begun with; where they have no place in
// the file, it is the full form of the pipeline.
func (p *Program) withKeys(set *runs.Set, point search.Point) ([]byte, error) {
	info := set.Info()
	if sum, err := files.SHA256(info.Pipeline); err != nil || sum != info.SHA256 {
		return nil, errors.Join(err, fmt.Errorf("%s is not the file that the search was begun with: bring that file back", info.Pipeline))
	}
	src, err := files.Read(info.Pipeline, graph.MaxBytes)
	if err != nil {
		return nil, err
	}
	src = runs.Upgraded(info.Pipeline, src)
	sets := slices.DeleteFunc(append(slices.Clone(info.Sets), point.Sets()...), func(s string) bool { return strings.HasPrefix(s, "sweep.") })
	var text []byte
	err = p.WithParts(func(parts *graph.Parts) error {
		meant, err := graph.Parse(info.Pipeline, src, graph.ParseOptions{Sets: sets, Parts: parts})
		if err != nil {
			return err
		}
		if text, err = graph.Assign(info.Pipeline, src, sets); err == nil {
			if is, err := graph.Parse(info.Pipeline, text, graph.ParseOptions{Parts: parts}); err == nil && is.Hash() == meant.Hash() {
				return nil
			}
		}
		text = []byte(meant.Resolved())
		return nil
	})
	return text, err
}

package results

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/compare"
	"github.com/rlhost/rlhost/pipeline/curves"
)

// defaultMetric is the metric of curves.
const defaultMetric = component.GaugeMeanReturn

// Plot draws learning curves.
type Plot struct {
	RunIDs []string `arg:"" name:"run" help:"Runs or sets of seeds; each word is a line of the picture."`
	Folder
	Output  string `short:"o" default:"curve.svg" placeholder:"FILE" help:"Picture: .svg or .png; - draws in the terminal alone."`
	Metric  string `default:"charts/episodic_return" help:"Metric to draw; list prints the names of all."`
	X       string `name:"x" enum:"env_steps,seconds" default:"env_steps" help:"env_steps or seconds."`
	GroupBy string `placeholder:"KEY" help:"A line for each value of a column or of a pipeline's key, over all runs named."`
	Points  int    `default:"200" help:"Points of each line."`
}

// Help describes the plot.
func (c *Plot) Help() string {
	return `A line is the mean over the runs of a word, with the 95 % interval of that mean as a band.

  rlhost plot cartpole/3 cartpole/4
  rlhost plot cartpole/7 --metric losses/entropy --x seconds -o entropy.png`
}

// Run draws.
func (c *Plot) Run(p *Program) error {
	format := strings.TrimPrefix(filepath.Ext(c.Output), ".")
	if c.Output != "-" && format != "svg" && format != "png" {
		return usage(fmt.Errorf("-o %s: pictures are .svg or .png", c.Output))
	}
	groups, err := c.groups()
	if err != nil {
		return err
	}
	if c.Metric == listMetrics {
		return c.list(p, groups)
	}
	picture := curves.Picture{Format: format, X: c.X, Y: c.Metric}
	for _, g := range groups {
		band, err := c.band(p, g.Runs)
		if err != nil {
			return fmt.Errorf("%s: %w", g.Value, err)
		}
		picture.Lines = append(picture.Lines, curves.Line{Label: fmt.Sprintf("%s (%d)", g.Value, band.Curves), Band: band})
		last := len(band.X) - 1
		p.printf("%s  %s: %s at %.6g %s, %s\n", curves.Sparkline(band.Mean, 40), g.Value, text.Returns(band.Mean[last]),
			band.X[last], strings.ReplaceAll(c.X, "_", " "), text.Count(band.Curves, "run"))
	}
	if c.Output == "-" {
		return nil
	}
	var out bytes.Buffer
	if err := curves.Draw(&out, picture); err != nil {
		return err
	}
	if err := write(c.Output, out.Bytes()); err != nil {
		return err
	}
	p.printf("wrote %s\n", c.Output)
	return nil
}

// listMetrics asks for the names of metrics, in the place of one.
const listMetrics = "list"

// list prints the names of the metrics that any of the runs has.
func (c *Plot) list(p *Program, groups []compare.Group) error {
	var all []string
	for _, g := range groups {
		for _, r := range g.Runs {
			names, err := curves.Metrics(r.Dir)
			if err != nil {
				return fmt.Errorf("%s: %w", r.Info.ID(), err)
			}
			all = append(all, names...)
		}
	}
	slices.Sort(all)
	for _, name := range slices.Compact(all) {
		p.printf("%s\n", name)
	}
	return nil
}

func (c *Plot) groups() ([]compare.Group, error) {
	groups, err := c.Each(c.RunIDs)
	if err != nil || c.GroupBy == "" {
		return groups, err
	}
	var list []*compare.Run
	for _, g := range groups {
		list = append(list, g.Runs...)
	}
	return compare.By(list, c.GroupBy)
}

// band reads the curves of some runs. Runs without the metric are left out with a notice, unless none has it.
func (c *Plot) band(p *Program, list []*compare.Run) (curves.Band, error) {
	axis := map[string]curves.Axis{"env_steps": curves.EnvSteps, "seconds": curves.Seconds}[c.X]
	var all []curves.Curve
	var errs []error
	for _, r := range list {
		curve, unreadable, err := curves.Read(r.Dir, c.Metric, axis)
		if unreadable > 0 {
			p.Notice("%s: %s of its metrics cannot be read and left out", r.Info.ID(), text.Count(unreadable, "line"))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.Info.ID(), err))
			continue
		}
		all = append(all, curve)
	}
	if len(all) == 0 {
		return curves.Band{}, errors.Join(append(errs, errors.New("none of its runs has a curve"))...)
	}
	for _, err := range errs {
		p.Notice("left out: %v", err)
	}
	band := curves.Over(all, max(c.Points, 2))
	if len(band.X) == 0 {
		return band, errors.New("its curves have no part of the axis in common")
	}
	return band, nil
}

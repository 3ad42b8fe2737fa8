package main

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/cmd/rlhost/results"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
)

type fmtCommand struct {
	Pipelines []string `arg:"" optional:"" predictor:"pipeline" help:"Pipeline files; default ./pipeline.toml."`
	Check     bool     `help:"Change nothing; name the files that are not in the layout, with exit code 4."`
}

// Help describes the layout.
func (c *fmtCommand) Help() string {
	return `All files get one layout: a blank line before each table, one blank on both sides of =, no indentation and no columns. Comments,
the order of keys and the spelling of values stay, and the file says the same. The names of files that change are printed.`
}

// Run formats each file; one that cannot be read keeps none of the others from it.
func (c *fmtCommand) Run(p *program) error {
	list := c.Pipelines
	if len(list) == 0 {
		list = []string{results.DefaultPipeline}
	}
	worst, differ := exitOK, 0
	for _, file := range list {
		changed, err := c.format(file)
		if err != nil {
			worst = max(worst, p.exitCode(p.printProblems(err)))
		}
		if changed {
			differ++
			fmt.Fprintln(p.out, file)
		}
	}
	switch {
	case worst != exitOK:
		return printed(worst, errors.New("not formatted"))
	case c.Check && differ > 0:
		return fail(exitCheck, fmt.Errorf("not in the layout: %d of %d files\n  help: rlhost fmt FILE…", differ, len(list)))
	}
	return nil
}

// format formats a file, and reports whether it changes.
func (c *fmtCommand) format(file string) (changed bool, err error) {
	src, err := readText(file)
	if err != nil {
		return false, err
	}
	formatted, err := graph.Format(file, src)
	if err != nil || string(formatted) == string(src) {
		return false, err
	}
	if c.Check {
		return true, nil
	}
	if err := files.Replace(file, formatted); err != nil {
		return false, fail(exitConfig, fmt.Errorf("%s: error[E012]: cannot be written: %w", file, err))
	}
	return true, nil
}

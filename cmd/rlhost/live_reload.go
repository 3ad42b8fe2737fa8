package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

type reloadCommand struct {
	Pipeline string   `arg:"" optional:"" default:"pipeline.toml" predictor:"pipeline" help:"Pipeline file."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, as for train. May be repeated."`
	At       string   `placeholder:"BOUNDARY" help:"When versions give way: step, trajectory, episode or now."`
	Undo     bool     `help:"Also take back versions that were swapped in, or brought back, since the file was last read."`
	Force    bool     `help:"Take away what does not become idle within 10 s, and count what is lost."`
	DryRun   bool     `help:"Show the differences, and change nothing."`
	jobFlags
}

// Help describes reload.
func (c *reloadCommand) Help() string {
	return `What differs between the running pipeline and the file is changed in the running job: other environments, new wires, limits,
hyper-parameters. Only what differs restarts. A file with mistakes changes nothing: all of them are shown (exit code 3).
What was changed in the job since the file was last read, and the file does not say, is taken back; a version only with --undo.

  rlhost reload --dry-run
  rlhost reload my.toml --set component.learner.learning_rate=0.0003`
}

// Run hands the file to the job.
func (c *reloadCommand) Run(p *program) error {
	if err := checkBoundary(c.At); err != nil {
		return err
	}
	src, err := readPipeline(c.Pipeline)
	if err != nil {
		return err
	}
	file, err := filepath.Abs(c.Pipeline)
	if err != nil {
		return err
	}
	c.sent, c.typed = file, c.Pipeline
	q := control.ReloadRequest{File: file, Source: string(src), Sets: c.Set, At: c.At, DryRun: c.DryRun, Undo: c.Undo, Force: c.Force}
	return tell(p, &c.jobFlags, control.VerbReload, q, func(r *control.ReloadReply) string {
		return text.Reload("reloaded "+filepath.Base(file), r)
	})
}

type scaleCommand struct {
	Components []string `arg:"" help:"COMPONENT=INSTANCES, such as rollout=4."`
	DryRun     bool     `help:"Check it, and change nothing."`
	jobFlags
}

// Run asks for more or fewer instances.
func (c *scaleCommand) Run(p *program) error {
	q := control.ScaleRequest{Components: map[string]int{}, DryRun: c.DryRun}
	for _, arg := range c.Components {
		name, count, _ := strings.Cut(arg, "=")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || name == "" {
			return fail(exitUsage, fmt.Errorf("%q: write it as COMPONENT=INSTANCES, such as rollout=4", arg))
		}
		q.Components[name] = n
	}
	return tell(p, &c.jobFlags, control.VerbScale, q, func(r *control.ReloadReply) string { return text.Reload("scaled", r) })
}

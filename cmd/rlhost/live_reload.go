package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/control"
)

type reloadCommand struct {
	Pipeline string   `arg:"" optional:"" default:"pipeline.toml" help:"Pipeline file."`
	Set      []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the file, as for train. May be repeated."`
	At       string   `placeholder:"BOUNDARY" help:"When versions give way: step, trajectory, episode or now."`
	DryRun   bool     `help:"Show the differences, and change nothing."`
	jobFlags
}

// Help says what reload does.
func (c *reloadCommand) Help() string {
	return `What differs between the running pipeline and the file is changed in the running job: other environments, new wires, limits,
hyper-parameters. Only what differs starts anew. A file with mistakes changes nothing: all of them are shown (exit code 3).

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
	q := control.ReloadRequest{File: file, Source: string(src), Sets: c.Set, At: c.At, DryRun: c.DryRun}
	var reply control.ReloadReply
	if err := c.asks(p, control.VerbReload, q, &reply, p.progress); err != nil {
		return err
	}
	return c.answer(p, reply, func() string { return reloadText("reloaded "+filepath.Base(file), &reply) })
}

// reloadText lists the differences, what became of each version, and the outcome.
func reloadText(done string, r *control.ReloadReply) string {
	if r.Outcome == control.Unchanged {
		return "nothing to change: this is what runs\n"
	}
	var b strings.Builder
	for _, c := range r.Changes {
		fmt.Fprintf(&b, "%s %s: %s\n", c.What, c.Name, c.Text)
	}
	for i := range r.Swaps {
		if r.Outcome == control.DryRun && r.Swaps[i].Checked == "" && r.Swaps[i].Canary == nil {
			continue
		}
		b.WriteString(swapText(&r.Swaps[i]))
	}
	if r.Outcome == control.DryRun {
		fmt.Fprintf(&b, "dry run: %s; nothing has changed\n", plural(len(r.Changes), "difference"))
		return b.String()
	}
	fmt.Fprintf(&b, "%s: %s in %s, at %s env steps\n", done, plural(len(r.Changes), "change"), seconds(r.Took), thousands(r.EnvStep))
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	return b.String()
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
	var reply control.ReloadReply
	if err := c.asks(p, control.VerbScale, q, &reply, p.progress); err != nil {
		return err
	}
	return c.answer(p, reply, func() string { return reloadText("scaled", &reply) })
}

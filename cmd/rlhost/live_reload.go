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
	Components []string `arg:"" help:"COMPONENT=INSTANCES or GROUP=INSTANCES, such as rollout=4."`
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

// wireFlags are the ends of a wire.
type wireFlags struct {
	Signal string `arg:"" help:"COMPONENT.SIGNAL that messages come from; '*.SIGNAL' is that of each component which has it."`
	Slot   string `arg:"" help:"COMPONENT.SLOT that they go to; '*.SLOT' too."`
	DryRun bool   `help:"Check it, and change nothing."`
}

type connectCommand struct {
	wireFlags
	Mode   string   `placeholder:"MODE" help:"all, queue, latest or reply; default by what the wire carries."`
	Depth  int      `placeholder:"N" help:"Messages that may wait; default by what the wire carries."`
	OnFull string   `placeholder:"HOW" help:"block, drop_newest, drop_oldest, coalesce or fail; default by what the wire carries."`
	Write  []string `placeholder:"COLUMN" help:"Columns of the message's block that the receiver may write."`
	jobFlags
}

// Help describes connect.
func (c *connectCommand) Help() string {
	return `The wire is checked as one of the file is, and comes in at the next boundary. The next reload takes it out again unless the file has it.

  rlhost connect rollout.trajectories logger.on_trajectories --mode all`
}

// Run asks for the wire.
func (c *connectCommand) Run(p *program) error {
	w := control.Wire{Signal: c.Signal, Slot: c.Slot, Mode: c.Mode, Depth: c.Depth, OnFull: c.OnFull, Write: c.Write}
	q := control.RewireRequest{Connect: []control.Wire{w}, DryRun: c.DryRun}
	return tell(p, &c.jobFlags, control.VerbRewire, q, func(r *control.ReloadReply) string { return text.Reload("connected", r) })
}

type disconnectCommand struct {
	wireFlags
	jobFlags
}

// Run asks for the wire to be taken out.
func (c *disconnectCommand) Run(p *program) error {
	q := control.RewireRequest{Disconnect: []control.Wire{{Signal: c.Signal, Slot: c.Slot}}, DryRun: c.DryRun}
	return tell(p, &c.jobFlags, control.VerbRewire, q, func(r *control.ReloadReply) string { return text.Reload("disconnected", r) })
}

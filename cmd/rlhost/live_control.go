package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

type pauseCommand struct {
	groupFlags
	jobFlags
}

type unpauseCommand struct {
	groupFlags
	jobFlags
}

// groupFlags say which components a request is for.
type groupFlags struct {
	Patterns []string      `arg:"" optional:"" name:"pattern" help:"Components by name, kind or pattern, such as rollout or 'rollout[*]'; default all."`
	Deadline time.Duration `default:"30s" help:"How long all of them together may take."`
}

// Help describes a pause.
func (c *pauseCommand) Help() string {
	return `A component that is paused ends what it has begun and begins nothing new; it keeps what it has. rlhost unpause ends it.

  rlhost pause
  rlhost pause rollout`
}

// Run pauses components.
func (c *pauseCommand) Run(p *program) error {
	return c.tell(p, &c.jobFlags, control.VerbPause, "paused")
}

// Run ends a pause.
func (c *unpauseCommand) Run(p *program) error {
	return c.tell(p, &c.jobFlags, control.VerbUnpause, "unpaused")
}

// tell asks components and prints the answer of each.
func (g *groupFlags) tell(p *program, f *jobFlags, verb control.Verb, done string) error {
	q := control.GroupRequest{Patterns: g.Patterns, Deadline: g.Deadline.Seconds()}
	var reply control.GroupReply
	if err := f.ask(p, verb, q, &reply, p.progress); err != nil {
		return err
	}
	if err := f.answer(p, &reply, text.Group(done, &reply)); err != nil {
		return err
	}
	if slices.ContainsFunc(reply.Answers, func(a control.Answer) bool { return a.Error != nil || a.TimedOut }) {
		return printed(exitFailed, errors.New("not all components did"))
	}
	return nil
}

type checkpointCommand struct {
	jobFlags
}

// Run asks for a checkpoint at the next dataset boundary.
func (c *checkpointCommand) Run(p *program) error {
	return tell(p, &c.jobFlags, control.VerbCheckpoint, control.CheckpointRequest{}, func(r *control.CheckpointReply) string {
		return "saved " + text.Checkpoint(r) + "\n"
	})
}

type stopCommand struct {
	Now bool `help:"At once, without a checkpoint."`
	jobFlags
}

// Help says how a run ends.
func (c *stopCommand) Help() string {
	return `The run saves a checkpoint at its next dataset boundary and ends, as after Ctrl-C; rlhost train --resume goes on with it.`
}

// Run ends the job.
func (c *stopCommand) Run(p *program) error {
	return tell(p, &c.jobFlags, control.VerbStop, control.StopRequest{Now: c.Now}, func(r *control.StopReply) string {
		if r.Checkpoint == nil {
			return fmt.Sprintf("stopped %s without a checkpoint; what was saved before is still there\n", c.run.ID())
		}
		return fmt.Sprintf("stopped %s; saved %s\n", c.run.ID(), text.Checkpoint(r.Checkpoint))
	})
}

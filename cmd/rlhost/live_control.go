package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

type pauseCommand struct {
	groupFlags
	jobFlags
}

type resumeCommand struct {
	groupFlags
	jobFlags
}

// groupFlags say whom a request is for.
type groupFlags struct {
	Patterns []string      `arg:"" optional:"" name:"pattern" help:"Components by name, kind or pattern, such as rollout or 'rollout[*]'; default all."`
	Deadline time.Duration `default:"30s" help:"How long all of them together may take."`
}

func (g *groupFlags) request() control.GroupRequest {
	return control.GroupRequest{Patterns: g.Patterns, Deadline: g.Deadline.Seconds()}
}

// Help says what a pause is.
func (c *pauseCommand) Help() string {
	return `A component that is paused ends what it has begun and begins nothing new; it keeps what it has. rlhost resume ends it.

  rlhost pause
  rlhost pause rollout`
}

// Run pauses components.
func (c *pauseCommand) Run(p *program) error {
	return c.group(p, control.VerbPause, c.request(), "paused")
}

// Run ends a pause.
func (c *resumeCommand) Run(p *program) error {
	return c.group(p, control.VerbResume, c.request(), "resumed")
}

// group asks components and says what each answered.
func (f *jobFlags) group(p *program, verb control.Verb, q control.GroupRequest, done string) error {
	var reply control.GroupReply
	if err := f.asks(p, verb, q, &reply, nil); err != nil {
		return err
	}
	if err := f.answer(p, reply, func() string { return groupText(done, &reply) }); err != nil {
		return err
	}
	for _, a := range reply.Answers {
		if a.Error != nil || a.TimedOut {
			return said(exitFailed, errors.New("not all components did"))
		}
	}
	return nil
}

// groupText tells what the components answered: one line for those that did, one for each that did not.
func groupText(done string, r *control.GroupReply) string {
	var ok []string
	var b strings.Builder
	for _, a := range r.Answers {
		switch {
		case a.TimedOut:
			fmt.Fprintf(&b, "%s: no answer in time\n", a.Name)
		case a.Error != nil:
			fmt.Fprintf(&b, "%s: error[%s]: %s\n", a.Name, a.Error.Code, a.Error.Reason)
		default:
			ok = append(ok, a.Name)
		}
	}
	if len(ok) == 0 {
		return b.String()
	}
	return fmt.Sprintf("%s %s\n", done, strings.Join(ok, ", ")) + b.String()
}

type checkpointCommand struct {
	jobFlags
}

// Run asks for a checkpoint at the next dataset boundary.
func (c *checkpointCommand) Run(p *program) error {
	var reply control.CheckpointReply
	if err := c.asks(p, control.VerbCheckpoint, control.CheckpointRequest{}, &reply, p.progress); err != nil {
		return err
	}
	return c.answer(p, reply, func() string { return "saved " + checkpointText(&reply) + "\n" })
}

// checkpointText names a checkpoint.
func checkpointText(c *control.CheckpointReply) string {
	text := fmt.Sprintf("policy version %d at %s env steps", c.PolicyVersion, thousands(c.EnvSteps))
	if c.Exact {
		return text + ", exactly: all state was saved"
	}
	if c.Why != "" {
		text += ", not exactly: " + c.Why
	}
	return text
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
	run, err := c.runningJob()
	if err != nil {
		return err
	}
	var reply control.StopReply
	if err := c.asksRun(p, run, control.VerbStop, control.StopRequest{Now: c.Now}, &reply, p.progress); err != nil {
		return err
	}
	return c.answer(p, reply, func() string {
		if reply.Checkpoint == nil {
			return fmt.Sprintf("stopped %s without a checkpoint; what was saved before is still there\n", run.ID())
		}
		return fmt.Sprintf("stopped %s; saved %s\n", run.ID(), checkpointText(reply.Checkpoint))
	})
}

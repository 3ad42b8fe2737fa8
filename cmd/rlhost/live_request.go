package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

type requestCommand struct {
	Pattern string        `arg:"" optional:"" help:"Components by name, kind or pattern, such as rollout or 'rollout[*]'; default all that answer."`
	Name    string        `arg:"" optional:"" name:"request" help:"Which request; default lists the requests that the components answer."`
	Args    string        `arg:"" optional:"" help:"Its arguments, a JSON object; default none."`
	Timeout time.Duration `default:"30s" help:"How long all of them together may take."`
	jobFlags
}

// Help describes requests.
func (c *requestCommand) Help() string {
	return `Each component is asked between two of its messages, all at the same time. Without a request it lists what there is to ask.

  rlhost request
  rlhost request counter total
  rlhost request 'rollout*' set_lr '{"lr": 1e-4}'`
}

// Run asks, and prints the answer of each component.
func (c *requestCommand) Run(p *program) error {
	q := control.AskRequest{Name: c.Name, Deadline: c.Timeout.Seconds()}
	if c.Pattern != "" {
		q.Patterns = []string{c.Pattern}
	}
	if c.Args != "" {
		if !json.Valid([]byte(c.Args)) {
			return fail(exitUsage, fmt.Errorf("error[%s]: the arguments are not JSON: %s\n  help: in quotes, such as '{\"lr\": 1e-4}'", control.CodeArgs, c.Args))
		}
		q.Args = json.RawMessage(c.Args)
	}
	if c.Timeout <= 0 {
		return fail(exitUsage, fmt.Errorf("--timeout %v, want more than 0", c.Timeout))
	}
	var reply control.AskReply
	if err := c.ask(p, control.VerbRequest, q, &reply, p.progress); err != nil {
		return err
	}
	if err := c.answer(p, &reply, text.Ask(&reply)); err != nil {
		return err
	}
	if slices.ContainsFunc(reply.Answers, func(a control.AskAnswer) bool { return a.Error != nil }) {
		return printed(exitFailed, errors.New("not all components answered"))
	}
	return nil
}

package main

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

type statusCommand struct {
	Which string `arg:"" optional:"" name:"run" help:"The same as --run."`
	Wait  bool   `help:"Wait for the job to begin, and until nothing is being changed or watched."`
	jobFlags
}

// Help describes status.
func (c *statusCommand) Help() string {
	return `One line a component: where it runs, its state, the version of its file, how fast it is, what waits for it. When the run stands
still, the last line names the first cause and the wire that is blocked. Env steps always add up.`
}

// longestStart is how long a command waits for a job that is only beginning.
const longestStart = time.Minute

// Run asks the job how it is.
func (c *statusCommand) Run(p *program) error {
	if c.Which != "" && c.Job != "" {
		return fail(exitUsage, fmt.Errorf("status %s --run %s: want one run", c.Which, c.Job))
	}
	c.Job += c.Which // one of them is empty
	if c.Wait {
		c.patience = longestStart
	}
	return tell(p, &c.jobFlags, control.VerbStatus, control.StatusRequest{Wait: c.Wait}, text.Status)
}

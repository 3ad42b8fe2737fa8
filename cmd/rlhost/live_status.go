package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/runs"
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
	err := tell(p, &c.jobFlags, control.VerbStatus, control.StatusRequest{Wait: c.Wait}, text.Status)
	if starts := (*startingError)(nil); !c.Wait && errors.As(err, &starts) {
		return c.starting(p, starts)
	}
	return err
}

// starting tells how far a run is that does not take commands yet.
func (c *statusCommand) starting(p *program, e *startingError) error {
	reply := struct {
		Run   string `json:"run"`
		Dir   string `json:"dir"`
		State string `json:"state"`
		runs.Starting
	}{e.run.ID(), e.run.Dir, "starting", e.at}
	return c.answer(p, reply, fmt.Sprintf("%s  %v\n", e.run.ID(), &e.at))
}

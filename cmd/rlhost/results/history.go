package results

import (
	"fmt"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// History lists the changes made during a run.
type History struct {
	RunID string `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name, cartpole/7, or latest; also one that goes on."`
	Folder
	JSON bool `name:"json" help:"Print a list of objects: with the command lines, and everything that differed."`
}

// Help describes history.
func (c *History) Help() string {
	return `A line for each swap, reload, scaling, rollback and other request: when, by whom, of what, from which version to which, and its outcome. Outcomes are committed, kept (it has passed its probation), rolled_back, refused, noted, or open where the run was killed during it.

  rlhost history cartpole/3`
}

// Run prints them, oldest first.
func (c *History) Run(p *Program) error {
	run, err := c.Find(c.RunID)
	if err != nil {
		return err
	}
	list, err := run.History()
	if err != nil {
		p.Notice("the history is not whole: %v", err)
	}
	if c.JSON {
		return p.encode(list)
	}
	rows := [][]string{{"TIME", "ENV STEP", "CHANGE", "WHO", "WHAT", "OF", "CHANGED", "OUTCOME"}}
	for i := range list {
		e := &list[i]
		outcome := e.Outcome
		if e.Reason != "" {
			outcome += ": " + e.Reason
		}
		rows = append(rows, []string{
			e.Time.Local().Format(time.DateTime), strconv.FormatUint(e.EnvStep, 10), strconv.FormatUint(e.Number, 10), who(e), e.What, e.Component, p.Printable(e.Changed()), p.Printable(outcome),
		})
	}
	return p.Table(rows)
}

// who asked for a change.
func who(e *runs.Entry) string {
	if len(e.Command) == 1 { // no person asked
		return "rlhost"
	}
	return fmt.Sprintf("uid %d", e.UID)
}

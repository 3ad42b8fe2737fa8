package main

import (
	"encoding/json"
	"fmt"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

type tapCommand struct {
	Pattern string   `arg:"" help:"Signals, such as rollout.trajectories, '*.episodes' or 'rollout.*'."`
	Limit   uint64   `placeholder:"N" help:"End after so many messages."`
	Every   uint64   `default:"1" placeholder:"N" help:"Show each N-th message alone."`
	Columns []string `placeholder:"COLUMN" help:"Columns of trajectories to show, such as reward,terminated."`
	Record  string   `type:"path" placeholder:"FILE" help:"Keep the messages with their blocks in a new file, at most 1GiB, for rlhost check --record."`
	jobFlags
}

// Help describes tap.
func (c *tapCommand) Help() string {
	return `One line a message as it passes: who sent it, its block, its numbers. The run does not wait for the tap: what it cannot follow it
leaves out, and says at the end how many. With --json each line is one object. A tap goes on across swaps.

  rlhost tap rollout.episodes --limit 10
  rlhost tap rollout.trajectories --columns reward,terminated --limit 1
  rlhost tap rollout.trajectories --record blocks.rec --limit 20`
}

// Run prints messages until the limit or Ctrl-C.
func (c *tapCommand) Run(p *program) error {
	q := control.TapRequest{Pattern: c.Pattern, Limit: c.Limit, Every: c.Every, Columns: c.Columns, Record: c.Record}
	var reply control.TapReply
	if err := c.ask(p, control.VerbTap, q, &reply, func(notice json.RawMessage) { c.show(p, notice) }); err != nil {
		return err
	}
	if c.Record != "" {
		p.notice("%s in %s, %s", text.Count(reply.Recorded, "message"), c.Record, text.Count(uint64(reply.Bytes), "byte"))
	}
	p.notice("%s passed, %d shown, %d left out because this end was too slow", text.Count(reply.Seen, "message"), reply.Shown, reply.Skipped)
	return nil
}

func (c *tapCommand) show(p *program, notice json.RawMessage) {
	if c.JSON {
		fmt.Fprintf(p.out, "%s\n", notice)
		return
	}
	var r control.TapRecord
	if json.Unmarshal(notice, &r) == nil {
		fmt.Fprint(p.out, printable(text.Tap(&r)))
	}
}

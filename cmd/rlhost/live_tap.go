package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

type tapCommand struct {
	Pattern string   `arg:"" help:"Signals, such as rollout.trajectories, '*.episodes' or 'rollout.*'."`
	Limit   uint64   `placeholder:"N" help:"End after so many messages."`
	Every   uint64   `default:"1" placeholder:"N" help:"Show each N-th message alone."`
	Columns []string `placeholder:"COLUMN" help:"Columns of trajectories to show, such as reward,terminated."`
	jobFlags
}

// Help says what tap shows.
func (c *tapCommand) Help() string {
	return `One line a message as it passes: who sent it, its block, its numbers. The run does not wait for the tap: what it cannot follow it
leaves out, and says at the end how many. With --json each line is one object. A tap goes on across swaps.

  rlhost tap rollout.episodes --limit 10
  rlhost tap rollout.trajectories --columns reward,terminated --limit 1`
}

// Run prints messages until the limit or Ctrl-C.
func (c *tapCommand) Run(p *program) error {
	q := control.TapRequest{Pattern: c.Pattern, Limit: c.Limit, Every: c.Every, Columns: c.Columns}
	var reply control.TapReply
	err := c.asks(p, control.VerbTap, q, &reply, func(notice json.RawMessage) { c.show(p, notice) })
	if err != nil {
		return err
	}
	p.notice("%s passed, %d shown, %d left out because this end was behind", plural(reply.Seen, "message"), reply.Shown, reply.Skipped)
	return nil
}

func (c *tapCommand) show(p *program, notice json.RawMessage) {
	if c.JSON {
		fmt.Fprintf(p.out, "%s\n", notice)
		return
	}
	var r control.TapRecord
	if json.Unmarshal(notice, &r) == nil {
		fmt.Fprint(p.out, printable(tapText(&r)))
	}
}

// tapText tells one message in one line, and one for each of its columns.
func tapText(r *control.TapRecord) string {
	var b strings.Builder
	at := time.UnixMicro(int64(r.Time * 1e6)).Format("15:04:05.000")
	fmt.Fprintf(&b, "%s %s  #%d", at, r.Signal, r.Sequence)
	if !strings.HasPrefix(r.Signal, r.From+".") { // it has several instances
		fmt.Fprintf(&b, "  from %s", r.From)
	}
	if r.Handle != "" {
		fmt.Fprintf(&b, "  block %s (%s bytes)", r.Handle, thousands(uint64(max(r.Bytes, 0))))
	}
	if r.PolicyVersion > 0 {
		fmt.Fprintf(&b, "  policy version %d", r.PolicyVersion)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		fmt.Fprintf(&b, "  %s %v", name, r.Values[name])
	}
	b.WriteByte('\n')
	for _, name := range slices.Sorted(maps.Keys(r.Columns)) {
		fmt.Fprintf(&b, "  %s:", name)
		for _, x := range r.Columns[name] {
			b.WriteByte(' ')
			b.WriteString(strconv.FormatFloat(x, 'g', 6, 64))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

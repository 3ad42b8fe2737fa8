package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/rlhost/rlhost/core/control"
)

type statusCommand struct {
	Which string `arg:"" optional:"" name:"run" help:"The same as --run."`
	Wait  bool   `help:"Wait for the job to begin, and until nothing is being changed or watched."`
	jobFlags
}

// Help says what status shows.
func (c *statusCommand) Help() string {
	return `One line a component: where it runs, its state, the version of its file, how fast it is, what waits for it. When the run stands
still, the last line names the first cause and the wire that is blocked. Env steps always add up.`
}

// Run asks the job how it is.
func (c *statusCommand) Run(p *program) error {
	if c.Which != "" && c.Job != "" {
		return fail(exitUsage, fmt.Errorf("status %s --run %s: want one run", c.Which, c.Job))
	}
	c.Job += c.Which // one of them is empty
	var reply control.StatusReply
	if err := c.ask(p, &c.jobFlags, &reply); err != nil {
		return err
	}
	return c.answer(p, reply, func() string { return statusText(&reply) })
}

func (c *statusCommand) ask(p *program, f *jobFlags, reply *control.StatusReply) error {
	if !c.Wait {
		return f.asks(p, control.VerbStatus, control.StatusRequest{}, reply, nil)
	}
	run, client, err := f.awaitJob()
	if err != nil && run != nil {
		return f.refused(p, run, context.Background(), err)
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return f.do(ctx, p, run, client, control.VerbStatus, control.StatusRequest{Wait: true}, reply, nil)
}

// blankEnds are blanks at the ends of lines.
var blankEnds = regexp.MustCompile(`(?m) +$`)

// statusText describes a job: a head, a table, and what is special now.
func statusText(s *control.StatusReply) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  pid %d  %s  policy version %d", s.Run, s.State, s.PID, wall(s.Wall), s.Policy)
	if s.MeanReturn != nil {
		b.WriteString("  return " + returnText(*s.MeanReturn))
	}
	b.WriteByte('\n')
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COMPONENT\tHOST\tSTATE\tVERSION\tRATE\tQUEUE\tNOTE")
	for _, row := range statusRows(s.Components) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	table := blankEnds.ReplaceAllString(b.String(), "")
	b.Reset()
	b.WriteString(table)
	fmt.Fprintf(&b, "env steps: %s\n", stepsText(&s.Steps))
	if n := s.Swaps; n != (control.SwapCounts{}) {
		fmt.Fprintf(&b, "changes: %d committed, %d rolled back, %d refused\n", n.Committed, n.RolledBack, n.Refused)
	}
	if s.Transition != "" {
		fmt.Fprintf(&b, "now: %s\n", s.Transition)
	}
	for _, x := range s.Probation {
		fmt.Fprintf(&b, "probation: %s, %s, %s left\n", x.Component, versionText(&x.Version), seconds(x.Left))
	}
	if s.Cause != "" {
		fmt.Fprintf(&b, "cause: %s\n", s.Cause)
	}
	return b.String()
}

// stepsText shows that env steps add up.
func stepsText(n *control.StepCounts) string {
	text := fmt.Sprintf("%s made = %s trained + %s dropped + %s under way", thousands(n.Made), thousands(n.Trained),
		thousands(n.Dropped), thousands(n.UnderWay))
	var reasons []string
	for _, why := range slices.Sorted(maps.Keys(n.Reasons)) {
		if n.Reasons[why] > 0 {
			reasons = append(reasons, why+" "+thousands(n.Reasons[why]))
		}
	}
	if len(reasons) > 0 {
		text += " (dropped: " + strings.Join(reasons, ", ") + ")"
	}
	return text
}

// statusRows puts neighbouring instances that are alike into one row.
func statusRows(list []control.ComponentStatus) [][]string {
	var rows [][]string
	for i := 0; i < len(list); {
		sum, n := list[i], 1
		for i+n < len(list) && alike(&list[i], &list[i+n]) {
			next := &list[i+n]
			sum.Rate += next.Rate
			sum.Queued += next.Queued
			sum.Depth += next.Depth
			n++
		}
		if n > 1 {
			base, first := instanceOf(list[i].Name)
			_, last := instanceOf(list[i+n-1].Name)
			sum.Name = fmt.Sprintf("%s[%d-%d]", base, first, last)
		}
		rows = append(rows, statusRow(&sum))
		i += n
	}
	return rows
}

// alike reports whether two instances of one component differ in numbers alone.
func alike(a, b *control.ComponentStatus) bool {
	nameA, first := instanceOf(a.Name)
	nameB, second := instanceOf(b.Name)
	sameVersion := a.Version == nil && b.Version == nil || a.Version != nil && b.Version != nil && *a.Version == *b.Version
	return nameA == nameB && first >= 0 && second > first && a.Host == b.Host && a.Runtime == b.Runtime && a.State == b.State &&
		sameVersion && a.Note == b.Note && a.Note == "" && a.WaitsFor == b.WaitsFor
}

// instanceOf divides rollout[3] into its parts; the index of a name without one is -1.
func instanceOf(name string) (component string, index int) {
	base, rest, ok := strings.Cut(name, "[")
	if !ok {
		return name, -1
	}
	index, err := strconv.Atoi(strings.TrimSuffix(rest, "]"))
	if err != nil {
		return name, -1
	}
	return base, index
}

func statusRow(c *control.ComponentStatus) []string {
	state := string(c.State)
	if c.State == control.Stalled || c.State == control.Failed || c.State == control.Lost {
		state = strings.ToUpper(state)
	}
	version := "–"
	if c.Version != nil {
		version = versionText(c.Version)
	}
	host := c.Host
	if c.Runtime == "process" && host == "local" {
		host = "process"
	}
	return []string{c.Name, host, state, version, rateText(c), queueText(c), noteText(c)}
}

func rateText(c *control.ComponentStatus) string {
	if math.IsNaN(c.Rate) || c.Unit == "" {
		return "–"
	}
	unit := c.Unit
	if strings.HasPrefix(unit, "env step") {
		unit = "st"
	} else if strings.HasPrefix(unit, "message") {
		unit = "msg"
	}
	return short(c.Rate) + " " + unit + "/s"
}

func queueText(c *control.ComponentStatus) string {
	if c.Depth == 0 {
		return "–"
	}
	return fmt.Sprintf("%d/%d", c.Queued, c.Depth)
}

func noteText(c *control.ComponentStatus) string {
	var notes []string
	if c.WaitsFor != "" {
		notes = append(notes, "waits for "+c.WaitsFor)
	}
	if c.Note != "" {
		notes = append(notes, c.Note)
	}
	if c.Previous != nil {
		notes = append(notes, "previous: "+versionText(c.Previous))
	}
	return strings.Join(notes, "; ")
}

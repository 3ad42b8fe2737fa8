package seeds

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// View shows how the seeds of a set come along: a table that is drawn again on a terminal, a line for each that ends elsewhere, or
// a line of JSON.
type View struct {
	Out      io.Writer
	Set      *runs.Set
	Terminal bool
	Size     func() (width, height int) // of the terminal, in characters
	JSON     bool

	progress map[uint64]Progress
	lines    int // of the table on the terminal
	drawn    time.Time
}

// redrawn is how often the table on a terminal is drawn again at most.
const redrawn = 100 * time.Millisecond

// Observe is for Trainer.Observe.
func (v *View) Observe(r runs.SeedRun, p Progress) {
	ended := r.State != runs.Running
	switch {
	case v.JSON && ended:
		_ = json.NewEncoder(v.Out).Encode(struct {
			Event string `json:"event"`
			runs.SeedRun
		}{"seed", r})
	case v.JSON:
	case !v.Terminal && ended:
		fmt.Fprintf(v.Out, "seed %d %s\n", r.Seed, seedText(&r, p))
	case v.Terminal:
		if v.progress == nil {
			v.progress = map[uint64]Progress{}
		}
		v.progress[r.Seed] = p
		v.draw(ended)
	}
}

// draw draws the table over the one before.
func (v *View) draw(now bool) {
	if !now && time.Since(v.drawn) < redrawn {
		return
	}
	v.drawn = time.Now()
	var b strings.Builder
	b.WriteString(v.over())
	width, height := v.Size()
	rows := v.rows(height - 1) // the cursor is below them
	v.lines = len(rows)
	for _, row := range rows {
		if r := []rune(row); len(r) >= width { // a line that wraps would not be drawn over
			row = string(r[:max(width-2, 0)]) + "…"
		}
		b.WriteString(row + "\n")
	}
	_, _ = io.WriteString(v.Out, b.String()) // a lost terminal must not end training
}

// rows has a line for each seed, or, if that is more than most, for each seed in training and a sum.
func (v *View) rows(most int) []string {
	var all, running []string
	count := map[string]int{}
	for _, r := range v.Set.Info().Seeds {
		row := fmt.Sprintf("seed %-4d %s", r.Seed, seedText(&r, v.progress[r.Seed]))
		all = append(all, row)
		if count[r.State]++; r.State == runs.Running {
			running = append(running, row)
		}
	}
	if len(all) <= most {
		return all
	}
	sum := fmt.Sprintf("%d ended, %d failed, %d running, %d pending", count[runs.Ended], count[runs.SeedFailed], count[runs.Running], count[runs.Pending])
	return append(running[:min(len(running), max(most-1, 0))], sum)
}

// over takes the cursor to where the table was drawn last, and clears it.
func (v *View) over() string {
	if v.lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\x1b[J", v.lines)
}

// End removes the table that was drawn again and again.
func (v *View) End() { _, _ = io.WriteString(v.Out, v.over()) }

// Text describes the outcome of a seed in a line.
func Text(r *runs.SeedRun) string { return seedText(r, Progress{}) }

// seedText describes a seed's state in a line.
func seedText(r *runs.SeedRun, p Progress) string {
	switch r.State {
	case runs.SeedFailed:
		first, _, _ := strings.Cut(r.Error, "\n")
		return fmt.Sprintf("failed: %q", first)
	case runs.Ended:
		if r.Return != nil {
			return fmt.Sprintf("return %s after %d env steps, %.2f s", text.Returns(*r.Return), r.EnvSteps, r.WallSeconds)
		}
		return fmt.Sprintf("ended (%s) after %d env steps without an evaluation", r.Reason, r.EnvSteps)
	case runs.Running:
		line := fmt.Sprintf("%d env steps", p.EnvSteps)
		if p.MeanReturn != nil {
			line += ", return " + text.Returns(*p.MeanReturn)
		}
		return line
	}
	return r.State
}

// Rows returns a head and a row for each seed with its outcome.
func Rows(list []runs.SeedRun) [][]string {
	rows := [][]string{{"seed", "state", "eval_return", "greedy", "sampled", "env_steps", "seconds"}}
	for _, r := range list {
		row := []string{fmt.Sprint(r.Seed), r.State, "", "", "", fmt.Sprint(r.EnvSteps), fmt.Sprintf("%.2f", r.WallSeconds)}
		for i, x := range []*float64{r.Return, r.Greedy, r.Sampled} {
			if x != nil {
				row[2+i] = text.Returns(*x)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

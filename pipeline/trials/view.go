package trials

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/search"
)

// States of a trial in a Row.
const (
	Running = "running" // a run of it is under way, or waits for its turn
	Stopped = "stopped" // it came to a rung, and others were trained further
	Ended   = "ended"
	Failed  = "failed"
)

// Row is a trial as it is shown.
type Row struct {
	Trial    int          `json:"trial"`
	State    string       `json:"state"`
	Rung     int          `json:"rung"` // the newest that has ended
	EnvSteps uint64       `json:"env_steps"`
	Value    *float64     `json:"value"`  // there: the mean over the seeds
	Values   []float64    `json:"values"` // of each seed
	Set      search.Point `json:"set"`
	Error    string       `json:"error,omitempty"`
	Seconds  float64      `json:"wall_seconds"` // of all runs together
}

// rowOf describes a trial.
func rowOf(t *search.Trial) Row {
	r := Row{Trial: t.Number, State: Running, Set: t.Set, Error: t.Error(), Values: []float64{}}
	for i := range t.Rungs {
		for _, o := range t.Rungs[i].Outcomes {
			r.Seconds += o.Seconds
		}
	}
	last := t.Last()
	if last == nil {
		return r
	}
	r.Rung, r.Values = last.Rung, append(r.Values, last.Values()...)
	if v, ok := last.Value(); ok {
		r.Value = &v
	}
	for _, o := range last.Outcomes {
		r.EnvSteps = max(r.EnvSteps, o.EnvSteps)
	}
	switch {
	case r.Error != "":
		r.State = Failed
	case t.Rungs[len(t.Rungs)-1].Done():
		r.State = Stopped
	}
	return r
}

// Rows describes all trials that have begun, in the order of their numbers.
func Rows(h *search.History, c *search.Config) []Row {
	rows := make([]Row, len(h.Trials))
	for i := range h.Trials {
		if rows[i] = rowOf(&h.Trials[i]); rows[i].State == Stopped && rows[i].Rung == len(c.Stops())-1 {
			rows[i].State = Ended
		}
	}
	return rows
}

// Cells returns a head and a row of text for each trial: a column for each key of the space, each value as it stands in a file.
func Cells(rows []Row, c *search.Config) [][]string {
	cells := [][]string{append([]string{"trial", "state", "value", "env_steps"}, append(c.Keys(), "error")...)}
	for _, r := range rows {
		value := ""
		if r.Value != nil {
			value = text.Returns(*r.Value)
		}
		row := []string{fmt.Sprint(r.Trial), r.State, value, fmt.Sprint(r.EnvSteps)}
		for _, key := range c.Keys() {
			word, _ := search.Literal(r.Set[key]) // which has been checked
			row = append(row, word)
		}
		first, _, _ := strings.Cut(r.Error, "\n")
		cells = append(cells, append(row, first))
	}
	return cells
}

// View shows how a search comes along: a line for each rung that has ended, of text or of JSON.
type View struct {
	Out    io.Writer
	Config *search.Config
	JSON   bool
}

// Observe is for Search.Observe.
func (v *View) Observe(r *search.Record, h *search.History) {
	o := r.Outcome
	switch {
	case o == nil:
	case o.Confirm:
		v.confirmed(o)
	case h.Trials[o.Trial].Rungs[o.Rung].Done():
		row := Rows(h, v.Config)[o.Trial]
		if v.JSON {
			_ = json.NewEncoder(v.Out).Encode(struct { // a reader that has gone must not end the search
				Event string `json:"event"`
				Row
			}{"trial", row})
			return
		}
		what := "failed: " + fmt.Sprintf("%q", strings.SplitN(row.Error, "\n", 2)[0])
		if row.Value != nil {
			what = fmt.Sprintf("%s after %d env steps", text.Returns(*row.Value), row.EnvSteps)
		}
		fmt.Fprintf(v.Out, "trial %d %s  %s\n", o.Trial, what, strings.Join(row.Set.Sets(), " "))
	}
}

func (v *View) confirmed(o *search.Outcome) {
	switch {
	case v.JSON:
		_ = json.NewEncoder(v.Out).Encode(struct {
			Event string `json:"event"`
			*search.Outcome
		}{"confirmed", o})
	case o.Value == nil:
		fmt.Fprintf(v.Out, "trial %d again with seed %d failed: %q\n", o.Trial, o.Seed, strings.SplitN(o.Error, "\n", 2)[0])
	default:
		fmt.Fprintf(v.Out, "trial %d again with seed %d: %s\n", o.Trial, o.Seed, text.Returns(*o.Value))
	}
}

// Conclusion is the result of a search, as in the last line of JSON.
type Conclusion struct {
	Event       string             `json:"event"` // end
	Set         string             `json:"set"`
	Folder      string             `json:"folder"`
	Trials      []Row              `json:"trials"`
	Best        *Row               `json:"best"`
	Confirmed   []Confirmed        `json:"confirmed"`
	Keys        []search.Influence `json:"keys"`      // the one first that explains most
	EnvSteps    uint64             `json:"env_steps"` // of the search, without its confirmation and without evaluations
	WallSeconds float64            `json:"wall_seconds"`

	ranked int // trials that Keys is of
}

// Conclude sums up a search that ran for so long.
func Conclude(set *runs.Set, h *search.History, c *search.Config, took time.Duration) *Conclusion {
	found := Find(h, c)
	end := &Conclusion{Event: "end", Set: set.ID(), Folder: set.Dir, Trials: Rows(h, c), Confirmed: found.Confirmed, EnvSteps: h.EnvSteps(), WallSeconds: took.Seconds()}
	if found.Best != nil {
		end.Best = &end.Trials[found.Best.Number]
	}
	end.Keys, end.ranked = h.Influences()
	return end
}

// Text describes the conclusion: first the score that was searched for, then the confirmation.
func (c *Conclusion) Text() string {
	var b strings.Builder
	failed := 0
	for _, r := range c.Trials {
		if r.State == Failed {
			failed++
		}
	}
	fmt.Fprintf(&b, "%s, %d failed, %d env steps, %.2f s; set %s\n", text.Count(len(c.Trials), "trial"), failed, c.EnvSteps, c.WallSeconds, c.Folder)
	if c.Best == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "best of the search: trial %d, %s (chosen by this score, which flatters it)\n", c.Best.Trial, text.Returns(*c.Best.Value))
	for _, x := range c.Confirmed {
		if len(x.Values) > 0 {
			fmt.Fprintf(&b, "trial %d on %s: mean %s (%s)\n", x.Trial, text.Count(len(x.Values), "fresh seed"), text.Returns(x.Mean.Value), x.Mean.Interval())
		}
	}
	c.keys(&b)
	return b.String()
}

// trend tells of a rank correlation over so many trials. One within two standard errors of none is no direction.
func trend(r *float64, trials int) string {
	switch {
	case r == nil:
		return ""
	case math.Abs(*r) < 2/math.Sqrt(float64(trials-1)):
		return fmt.Sprintf("  no clear direction, rank correlation %+.2f", *r)
	case *r > 0:
		return fmt.Sprintf("  higher is better, rank correlation %+.2f", *r)
	}
	return fmt.Sprintf("  higher is worse, rank correlation %+.2f", *r)
}

// keys tells what each key explains.
func (c *Conclusion) keys(b *strings.Builder) {
	if len(c.Keys) == 0 {
		return
	}
	fmt.Fprintf(b, "what each key alone explains of the order of %d trials:\n", c.ranked)
	for _, k := range c.Keys {
		fmt.Fprintf(b, "%4.0f %%  %s%s\n", 100*k.Share, k.Key, trend(k.Trend, c.ranked))
	}
}

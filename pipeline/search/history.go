package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
)

// History is what has come of a search so far: its journal, folded.
type History struct {
	Trials    []Trial
	Confirmed []Rung  // orders of the confirmation, in the order in which they were given
	Added     []Point // points that must be tried, in order; the first of them have been
	Total     int     // trials of the search, with the added ones

	config   *Config
	orders   []Order           // in the order in which they were given
	taken    int               // of Added
	open     int               // outcomes that are owed
	values   map[int][]float64 // of the rungs of each height that have ended, sorted
	failures failures
}

// Trial is one point of the space, and how far it has come.
type Trial struct {
	Number int
	Set    Point
	Rungs  []Rung
	Pruned bool // by the program
	Judged int  // rungs that the program has let pass

	added bool
}

// Rung is an order with the outcomes of its runs.
type Rung struct {
	Order
	Outcomes []Outcome

	// When it ended: how many rungs of the same height had a value, and the median of these.
	others int
	median float64
}

// failures are the trials that failed one after the other with one cause.
type failures struct {
	cause  string
	trials []int
}

// NewHistory returns the history of a search that has not begun.
func NewHistory(c *Config) *History {
	return &History{Total: c.Trials, config: c, values: map[int][]float64{}}
}

// Done reports whether all runs of the rung have ended.
func (r *Rung) Done() bool { return len(r.Outcomes) == len(r.Seeds) }

// Value is the mean of the runs' values; ok is false while some are under way, and if one failed.
func (r *Rung) Value() (value float64, ok bool) {
	if !r.Done() {
		return 0, false
	}
	for _, o := range r.Outcomes {
		if o.Value == nil {
			return 0, false
		}
		value += *o.Value / float64(len(r.Outcomes))
	}
	return value, !math.IsInf(value, 0)
}

// Values are the values of the runs that have one.
func (r *Rung) Values() (list []float64) {
	for _, o := range r.Outcomes {
		if o.Value != nil {
			list = append(list, *o.Value)
		}
	}
	return list
}

// Error is why a run of the rung failed; empty if none did.
func (r *Rung) Error() string {
	for _, o := range r.Outcomes {
		if o.Error != "" {
			return o.Error
		}
	}
	return ""
}

// Last is the newest rung that has ended, or nil.
func (t *Trial) Last() *Rung {
	for i := range slices.Backward(t.Rungs) {
		if t.Rungs[i].Done() {
			return &t.Rungs[i]
		}
	}
	return nil
}

// Failed reports whether a run of the trial has failed.
func (t *Trial) Failed() bool { return t.Error() != "" }

// Error is why the trial failed; empty if it did not.
func (t *Trial) Error() string {
	for i := range t.Rungs {
		if e := t.Rungs[i].Error(); e != "" {
			return e
		}
	}
	return ""
}

// EnvSteps are the env steps that the runs of all trials have made in the search, without its confirmation and without evaluations.
func (h *History) EnvSteps() (total uint64) {
	for i := range h.Trials {
		if r := h.Trials[i].Last(); r != nil {
			for _, o := range r.Outcomes {
				total += o.EnvSteps
			}
		}
	}
	return total
}

// Open is how many runs have been ordered and have not ended.
func (h *History) Open() int { return h.open }

// Ended is the cause with which so many trials failed one after the other that the search ended; empty if it did not.
func (h *History) Ended() string {
	if len(h.failures.trials) < sameFailures {
		return ""
	}
	return h.failures.cause
}

// sameFailures is how many trials that fail in a row with one cause end a search.
const sameFailures = 3

// Best returns the trials that have a value, the best first: by the rung that they came to, then by the value there. Those with the same
// value are in the order of their numbers.
func (h *History) Best() (list []*Trial) {
	for i := range h.Trials {
		if t := &h.Trials[i]; t.Last() != nil && !t.Failed() {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *Trial) int {
		return cmp.Or(cmp.Compare(b.Last().Rung, a.Last().Rung), h.compare(a.Last(), b.Last()))
	})
	return list
}

// compare orders two rungs that have a value, the better first.
func (h *History) compare(a, b *Rung) int {
	x, _ := a.Value()
	y, _ := b.Value()
	switch {
	case h.config.Better(x, y):
		return -1
	case h.config.Better(y, x):
		return 1
	}
	return 0
}

// at returns the rungs of one height that have ended, the best first, failed ones last.
func (h *History) at(rung int) (list []*Rung) {
	for i := range h.Trials {
		if t := &h.Trials[i]; len(t.Rungs) > rung && t.Rungs[rung].Done() {
			list = append(list, &t.Rungs[rung])
		}
	}
	slices.SortStableFunc(list, func(a, b *Rung) int {
		_, x := a.Value()
		_, y := b.Value()
		if x != y {
			return map[bool]int{true: -1, false: 1}[x]
		}
		return h.compare(a, b)
	})
	return list
}

// Add folds a record. The error says why it cannot follow on what is there.
func (h *History) Add(r *Record) error {
	switch {
	case r.Orders != nil:
		for _, o := range r.Orders {
			if err := h.order(o); err != nil {
				return fmt.Errorf("order of trial %d: %w", o.Trial, err)
			}
		}
		return nil
	case r.Outcome != nil:
		if err := h.outcome(r.Outcome); err != nil {
			return fmt.Errorf("outcome of trial %d: %w", r.Outcome.Trial, err)
		}
		return nil
	case r.Judgment != nil:
		return h.judgment(r.Judgment)
	case r.Point != nil:
		if err := h.config.Check(r.Point); err != nil {
			return err
		}
		h.Added, h.Total = append(h.Added, r.Point), h.Total+1
		return nil
	case r.Trials != 0:
		if total := r.Trials + len(h.Added); total < h.Total || total > maxTrials {
			return fmt.Errorf("%d trials, where there are %d", r.Trials, h.Total-len(h.Added))
		}
		h.Total = r.Trials + len(h.Added)
		return nil
	}
	return h.retry()
}

func (h *History) order(o Order) error {
	if len(o.Seeds) == 0 || len(o.Seeds) > maxSeeds || o.Until == 0 {
		return errors.New("it has no seeds, or no env steps")
	}
	if o.Confirm {
		if o.Trial < 0 || o.Trial >= len(h.Trials) || slices.ContainsFunc(h.Confirmed, func(r Rung) bool { return r.Trial == o.Trial }) {
			return errors.New("there is no such trial to confirm, or it is confirmed already")
		}
		h.Confirmed = append(h.Confirmed, Rung{Order: o})
		h.orders = append(h.orders, o)
		h.open += len(o.Seeds)
		return nil
	}
	if o.Set != nil {
		if o.Trial != len(h.Trials) || o.Rung != 0 || o.Trial >= h.Total {
			return fmt.Errorf("it begins at rung %d after %d trials", o.Rung, len(h.Trials))
		}
		if err := h.config.Check(o.Set); err != nil {
			return err
		}
		h.Trials = append(h.Trials, Trial{Number: o.Trial, Set: o.Set, added: o.Added})
		if o.Added {
			h.taken++
		}
	}
	if o.Trial < 0 || o.Trial >= len(h.Trials) {
		return errors.New("the trial has not begun")
	}
	t := &h.Trials[o.Trial]
	if o.Rung != len(t.Rungs) || o.Rung > 0 && !t.Rungs[o.Rung-1].Done() {
		return fmt.Errorf("rung %d, where the trial has come to %d", o.Rung, len(t.Rungs))
	}
	t.Rungs = append(t.Rungs, Rung{Order: o})
	h.orders = append(h.orders, o)
	h.open += len(o.Seeds)
	return nil
}

// rung returns the place of a run's outcome, or nil.
func (h *History) rung(o *Outcome) *Rung {
	if o.Confirm {
		for i := range h.Confirmed {
			if h.Confirmed[i].Trial == o.Trial {
				return &h.Confirmed[i]
			}
		}
		return nil
	}
	if o.Trial < 0 || o.Trial >= len(h.Trials) || o.Rung < 0 || o.Rung >= len(h.Trials[o.Trial].Rungs) {
		return nil
	}
	return &h.Trials[o.Trial].Rungs[o.Rung]
}

func (h *History) outcome(o *Outcome) error {
	r := h.rung(o)
	if r == nil || !slices.Contains(r.Seeds, o.Seed) || r.has(o.Seed) {
		return fmt.Errorf("rung %d with seed %d was not ordered, or has ended", o.Rung, o.Seed)
	}
	r.Outcomes = append(r.Outcomes, *o)
	h.open--
	if r.Done() && !o.Confirm {
		h.rank(r)
	}
	h.failures.note(o)
	return nil
}

// rank notes where a rung that has just ended stands among those before it.
func (h *History) rank(r *Rung) {
	sorted := h.values[r.Rung]
	if r.others = len(sorted); r.others > 0 {
		r.median = (sorted[(r.others-1)/2] + sorted[r.others/2]) / 2
	}
	if value, ok := r.Value(); ok {
		at, _ := slices.BinarySearch(sorted, value)
		h.values[r.Rung] = slices.Insert(sorted, at, value)
	}
}

// has reports whether the run with a seed has ended.
func (r *Rung) has(seed uint64) bool {
	return slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Seed == seed })
}

// digits differ between errors that have one cause: they number trials, or are their values.
var digits = regexp.MustCompile(`[0-9.eE+-]*[0-9]`)

// note counts trials that fail one after the other with one cause.
func (f *failures) note(o *Outcome) {
	switch {
	case o.Error == "":
		*f = failures{}
	case digits.ReplaceAllString(o.Error, "0") != digits.ReplaceAllString(f.cause, "0"):
		*f = failures{o.Error, []int{o.Trial}}
	case !slices.Contains(f.trials, o.Trial):
		f.trials = append(f.trials, o.Trial)
	}
}

func (h *History) judgment(j *Judgment) error {
	if j.Trial < 0 || j.Trial >= len(h.Trials) || h.Trials[j.Trial].Judged != j.Rung || h.Trials[j.Trial].Pruned {
		return fmt.Errorf("judgment of trial %d at rung %d, which was not reported", j.Trial, j.Rung)
	}
	t := &h.Trials[j.Trial]
	if j.Rung < 0 || j.Rung >= len(t.Rungs) || !t.Rungs[j.Rung].Done() {
		return fmt.Errorf("judgment of trial %d at rung %d, which has not ended", j.Trial, j.Rung)
	}
	if t.Pruned = j.Prune; !j.Prune {
		t.Judged++
	}
	return nil
}

// retry makes the failures that ended the search open orders again.
func (h *History) retry() error {
	if h.Ended() == "" {
		return errors.New("retry, where the search has not ended by failures")
	}
	again := func(r *Rung) {
		before := len(r.Outcomes)
		r.Outcomes = slices.DeleteFunc(slices.Clone(r.Outcomes), func(o Outcome) bool { return o.Error != "" })
		h.open += before - len(r.Outcomes)
	}
	for _, n := range h.failures.trials {
		for i := range h.Trials[n].Rungs {
			again(&h.Trials[n].Rungs[i])
		}
		for i := range h.Confirmed {
			if h.Confirmed[i].Trial == n {
				again(&h.Confirmed[i])
			}
		}
	}
	h.failures = failures{}
	return nil
}

// Task is one run of an order.
type Task struct {
	Order
	Seed uint64
}

// Same reports whether both are the same run of the same order.
func (t Task) Same(o Task) bool {
	return t.Trial == o.Trial && t.Rung == o.Rung && t.Confirm == o.Confirm && t.Seed == o.Seed
}

// Owed returns the runs that were ordered and have no outcome, in the order in which they were ordered.
func (h *History) Owed() (list []Task) {
	for _, o := range h.orders {
		r := h.rung(&Outcome{Trial: o.Trial, Rung: o.Rung, Confirm: o.Confirm})
		for _, seed := range r.Seeds {
			if !r.has(seed) {
				list = append(list, Task{r.Order, seed})
			}
		}
	}
	return list
}

package trials

import (
	"slices"

	"github.com/rlhost/rlhost/pipeline/search"
	"github.com/rlhost/rlhost/pipeline/seeds"
)

// Result is what a search has found.
type Result struct {
	Best *search.Trial
	// Confirmed are the best trials that were trained again, the best of them first.
	Confirmed []Confirmed
}

// Confirmed is a trial that was trained again from nothing, with seeds that the search has not seen. Mean has an interval that covers with
// all of the others at once.
type Confirmed struct {
	Trial  int            `json:"trial"`
	Set    search.Point   `json:"set"`
	Values []float64      `json:"values"`
	Failed int            `json:"failed"`
	Mean   seeds.Estimate `json:"mean"`
}

// confidence is that of the intervals of all confirmed trials together.
const confidence = 0.95

// Find sums up a history.
func Find(h *search.History, c *search.Config) Result {
	var r Result
	if best := h.Best(); len(best) > 0 {
		r.Best = best[0]
	}
	for i := range h.Confirmed {
		if rung := &h.Confirmed[i]; rung.Done() {
			x := Confirmed{Trial: rung.Trial, Set: h.Trials[rung.Trial].Set, Values: rung.Values()}
			x.Failed = len(rung.Seeds) - len(x.Values)
			// The best of several is chosen by these very scores: each interval has a part of what may be missed.
			if len(x.Values) == 0 {
				r.Confirmed = append(r.Confirmed, x)
				continue
			}
			x.Mean = seeds.Summarize([][]float64{x.Values}, seeds.Options{Confidence: 1 - (1-confidence)/float64(len(h.Confirmed))}).Mean
			r.Confirmed = append(r.Confirmed, x)
		}
	}
	slices.SortStableFunc(r.Confirmed, func(a, b Confirmed) int {
		switch x, y := a.Mean.Value, b.Mean.Value; {
		case len(a.Values) == 0 || len(b.Values) == 0:
			return len(b.Values) - len(a.Values)
		case c.Better(x, y):
			return -1
		case c.Better(y, x):
			return 1
		}
		return 0
	})
	return r
}

package search

import (
	"cmp"
	"math"
	"slices"
)

// Influence is what a key alone has to do with how well the trials of a search went. All numbers are of ranks, so that one trial that is far
// better or worse than all others counts like any other.
type Influence struct {
	Key string `json:"key"`
	// Share is the part of the variance of the trials' ranks that the values of the key explain, less the part that as many random
	// groups of trials would: 0 to 1. Keys with bounds are cut into groups of equal size.
	Share float64 `json:"share"`
	// Trend is Spearman's rank correlation of the key's value with the trials' ranks: above 0 where higher values are better. It is nil
	// for choices that are not all numbers.
	Trend *float64 `json:"trend"`
}

const (
	fewestRanked = 10 // trials below which nothing can be said
	mostGroups   = 5  // that a key with bounds is cut into
	groupSize    = 4  // trials in one of them at least
)

// Influences returns what each key has to do with how well trials went, the greatest share first, and how many trials that is of: all that
// have a value, in the order of Best. There is none for fewer than ten trials.
func (h *History) Influences() (list []Influence, trials int) {
	best := h.Best()
	if trials = len(best); trials < fewestRanked {
		return nil, trials
	}
	slices.Reverse(best)
	ranks := ranksOf(trials, func(i, j int) bool {
		return best[i].Last().Rung == best[j].Last().Rung && h.compare(best[i].Last(), best[j].Last()) == 0
	})
	for _, key := range h.config.Keys() {
		x := Influence{Key: key}
		values, numbers := make([]float64, trials), true
		groups := make([]string, trials)
		for i, t := range best {
			var ok bool
			values[i], ok = numberOf(t.Set[key])
			numbers = numbers && ok
			groups[i], _ = Literal(t.Set[key]) // which has been checked
		}
		if numbers {
			trend := correlation(ranksOfValues(values), ranks)
			x.Trend = &trend
		}
		if h.config.Space[key].Choices == nil {
			groups = cut(values)
		}
		x.Share = explained(groups, ranks)
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b Influence) int { return cmp.Compare(b.Share, a.Share) })
	return list, trials
}

func numberOf(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// ranksOf returns the ranks 0, 1, … of n things in their order; neighbours that are the same share the mean of theirs.
func ranksOf(n int, same func(i, j int) bool) []float64 {
	ranks := make([]float64, n)
	for first := 0; first < n; {
		end := first + 1
		for end < n && same(end-1, end) {
			end++
		}
		for i := first; i < end; i++ {
			ranks[i] = float64(first+end-1) / 2
		}
		first = end
	}
	return ranks
}

// ranksOfValues returns the rank of each value.
func ranksOfValues(values []float64) []float64 {
	order := ordered(values)
	sorted := ranksOf(len(values), func(i, j int) bool { return values[order[i]] == values[order[j]] })
	ranks := make([]float64, len(values))
	for i, at := range order {
		ranks[at] = sorted[i]
	}
	return ranks
}

// ordered returns the places of values, the smallest first.
func ordered(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order
}

// cut puts values into groups of neighbours, of the same size but for one.
func cut(values []float64) []string {
	n := min(mostGroups, len(values)/groupSize)
	groups := make([]string, len(values))
	for i, at := range ordered(values) {
		groups[at] = string(rune('a' + i*n/len(values)))
	}
	return groups
}

// correlation is Pearson's; 0 where either does not vary.
func correlation(x, y []float64) float64 {
	var xy, xx, yy float64
	mx, my := mean(x), mean(y)
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	if xx == 0 || yy == 0 {
		return 0
	}
	return xy / math.Sqrt(xx*yy)
}

// explained is epsilon squared: the part of the variance of y between groups, less what is expected of groups by chance; at least 0.
func explained(groups []string, y []float64) float64 {
	of := map[string][]float64{}
	for i, g := range groups {
		of[g] = append(of[g], y[i])
	}
	all, within, total := mean(y), 0.0, 0.0
	for _, g := range slices.Compact(slices.Sorted(slices.Values(groups))) { // in one order: sums of floats depend on it
		m := mean(of[g])
		for _, v := range of[g] {
			within += (v - m) * (v - m)
			total += (v - all) * (v - all)
		}
	}
	free := len(y) - len(of)
	if total == 0 || free < 1 {
		return 0
	}
	return max(0, 1-within/float64(free)/(total/float64(len(y)-1)))
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

package channel

import (
	"cmp"
	"slices"
)

// Rule says how Deal deals.
type Rule uint8

// Rules of dealing. The first two keep the order of items within a part; ByWeight keeps that of parts too.
const (
	LongestFirst Rule = iota // the heaviest first, each to the part that weighs least
	LeastLoaded              // in their order, each to the part that weighs least
	ByWeight                 // in their order, a run of items of about the same weight each
)

// Deal returns which items each of the parts gets, by their indices, so that all weigh about the same.
func Deal(weights []float64, parts int, rule Rule) [][]int {
	dealt := make([][]int, parts)
	if parts == 0 {
		return dealt
	}
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	if rule == ByWeight {
		runs(weights, dealt)
		return dealt
	}
	if rule == LongestFirst {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	}
	loads := make([]float64, parts)
	for _, i := range order {
		least := 0
		for p := range loads {
			if loads[p] < loads[least] || loads[p] == loads[least] && len(dealt[p]) < len(dealt[least]) {
				least = p
			}
		}
		loads[least] += weights[i]
		dealt[least] = append(dealt[least], i)
	}
	return dealt
}

// runs deals each item to the part in whose share of the weight its middle lies.
func runs(weights []float64, dealt [][]int) {
	total := 0.0
	for _, w := range weights {
		total += w
	}
	before := 0.0
	for i, w := range weights {
		p := len(dealt) * i / len(weights)
		if total > 0 {
			p = min(int((before+w/2)/total*float64(len(dealt))), len(dealt)-1)
		}
		dealt[p] = append(dealt[p], i)
		before += w
	}
}

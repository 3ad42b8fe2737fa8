package cuda

import "github.com/rlhost/rlhost/gpu/cuda/kernels"

// choices is an action of categorical elements: Categorical, MultiCategorical and, with pairs, whose first logit is 0, Bernoulli.
func choices(counts []int, pairs bool) action {
	a := action{kind: kernels.Choices, draws: int32(len(counts))}
	if pairs {
		a.kind = kernels.Pairs
	}
	for _, n := range counts {
		a.counts = append(a.counts, int32(n))
	}
	return a
}

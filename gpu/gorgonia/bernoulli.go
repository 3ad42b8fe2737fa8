package gorgonia

import (
	"slices"
)

func bernoulliRow(n int, logits, mask, action *Node) (logProb, entropy *Node) {
	pairs := chosen(logits, 2*n, "second of pairs", func(i int) int {
		if i%2 == 0 {
			return -1
		}
		return i / 2
	})
	return multiCategoricalRow(slices.Repeat([]int{2}, n), pairs, mask, action)
}

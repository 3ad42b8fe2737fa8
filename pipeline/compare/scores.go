package compare

import (
	"maps"
	"slices"
)

// Scores returns the scores of some runs by task, which is the environment that they were trained on, and how many runs have
// none.
func Scores(list []*Run) (tasks []string, scores [][]float64, without int) {
	by := map[string][]float64{}
	for _, r := range list {
		score, ok := r.Score()
		if !ok {
			without++
			continue
		}
		by[r.Info.Env] = append(by[r.Info.Env], score)
	}
	tasks = slices.Sorted(maps.Keys(by))
	for _, t := range tasks {
		scores = append(scores, by[t])
	}
	return tasks, scores, without
}

// Matrix returns scores as the package rliable takes them, [run][task]: as many runs of each task as the task with the fewest
// has.
func Matrix(scores [][]float64) [][]float64 {
	if len(scores) == 0 {
		return [][]float64{}
	}
	n := len(scores[0])
	for _, task := range scores {
		n = min(n, len(task))
	}
	matrix := make([][]float64, n)
	for i := range matrix {
		for _, task := range scores {
			matrix[i] = append(matrix[i], task[i])
		}
	}
	return matrix
}

package testkit

import (
	"math"
	"testing"
)

// Allocs is testing.AllocsPerRun for processes in which other goroutines allocate now and then: the least of batches of runs.
// Each batch calls f once more than runs.
func Allocs(batches, runs int, f func()) float64 {
	least := math.Inf(1)
	for range batches {
		least = min(least, testing.AllocsPerRun(runs, f))
	}
	return least
}

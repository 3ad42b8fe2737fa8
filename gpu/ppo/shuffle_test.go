package ppo

import (
	"math"
	"slices"
	"testing"
)

func TestShufflePermutesByDatasetAndEpoch(t *testing.T) {
	base := make([]uint32, 1000)
	for i := range base {
		base[i] = uint32(i) * 3
	}
	shuffled := func(seed, dataset uint64, epoch uint32) []uint32 {
		rows := slices.Clone(base)
		Shuffle(seed, dataset, epoch, rows)
		return rows
	}
	first := shuffled(1, 2, 3)
	if again := shuffled(1, 2, 3); !slices.Equal(again, first) {
		t.Error("the same keys shuffle differently")
	}
	for _, other := range [][]uint32{base, shuffled(2, 2, 3), shuffled(1, 3, 3), shuffled(1, 2, 4)} {
		if slices.Equal(first, other) {
			t.Error("another key shuffles alike")
		}
	}
	slices.Sort(first)
	if !slices.Equal(first, base) {
		t.Error("Shuffle lost rows")
	}
	Shuffle(1, 2, 3, nil)
}

func TestShuffleIsFair(t *testing.T) {
	const n, rounds = 7, 7000
	var count [n][n]int
	for round := range uint64(rounds) {
		rows := []uint32{0, 1, 2, 3, 4, 5, 6}
		Shuffle(11, round, 0, rows)
		for at, row := range rows {
			count[at][row]++
		}
	}
	for at := range count {
		for row, got := range count[at] {
			if math.Abs(float64(got)-rounds/n) > 5*math.Sqrt(rounds/n) {
				t.Errorf("row %d came to place %d %d times of %d", row, at, got, rounds)
			}
		}
	}
}

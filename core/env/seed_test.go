package env

import "testing"

func TestSeed_NeighbouringRunsShareNoStream(t *testing.T) {
	seen := map[uint64][2]int{}
	for run := range 10 {
		for index := range 4096 {
			seed := Seed(uint64(run), index)
			if other, ok := seen[seed]; ok {
				t.Errorf("run %d env %d has the seed of run %d env %d", run, index, other[0], other[1])
			}
			seen[seed] = [2]int{run, index}
		}
	}
}

func TestSeeds_EqualSeed(t *testing.T) {
	to := make([]uint64, 100)
	for _, first := range []int{0, 1, 1 << 20} {
		Seeds(to, 7, first)
		for i, got := range to {
			if want := Seed(7, first+i); got != want {
				t.Fatalf("environment %d: %#x, want %#x", first+i, got, want)
			}
		}
	}
}

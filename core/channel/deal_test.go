package channel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// largest returns the weight of the heaviest part, of the mean of all.
func largest(weights []float64, dealt [][]int) float64 {
	total, most := 0.0, 0.0
	for _, part := range dealt {
		sum := 0.0
		for _, i := range part {
			sum += weights[i]
		}
		total, most = total+sum, max(most, sum)
	}
	return most / (total / float64(len(dealt)))
}

func TestDeal_EveryItemOnceAndInOrder(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		weights := make([]float64, r.IntN(40))
		for i := range weights {
			weights[i] = float64(r.IntN(4))
		}
		for _, rule := range []Rule{LongestFirst, LeastLoaded, ByWeight} {
			dealt := Deal(weights, 1+r.IntN(6), rule)
			all := slices.Concat(dealt...)
			if rule == ByWeight && !slices.IsSorted(all) {
				t.Fatalf("seed %d: by weight %v", seed, dealt)
			}
			slices.Sort(all)
			for i, at := range all {
				if at != i {
					t.Fatalf("seed %d, rule %d: %v", seed, rule, dealt)
				}
			}
			if len(all) != len(weights) {
				t.Fatalf("seed %d, rule %d: %d of %d items", seed, rule, len(all), len(weights))
			}
		}
	}
}

// TestDeal_OfLongTails: 512 lengths of Pareto's law with index 1.5, cut off at 32 times the least as a limit of tokens does, for 8 receivers.
func TestDeal_OfLongTails(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	worst := map[Rule]float64{}
	for range 100 {
		weights := make([]float64, 512)
		for i := range weights {
			weights[i] = math.Min(math.Pow(1-r.Float64(), -1/1.5), 32)
		}
		for _, rule := range []Rule{LongestFirst, LeastLoaded, ByWeight} {
			worst[rule] = max(worst[rule], largest(weights, Deal(weights, 8, rule)))
		}
	}
	t.Logf("the largest part of the mean, the worst of 100: longest first %.4f, least loaded %.4f, by weight %.4f", worst[LongestFirst], worst[LeastLoaded], worst[ByWeight])
	if worst[LongestFirst] > 1.01 || worst[LeastLoaded] > 1.3 || worst[ByWeight] > 1.3 {
		t.Errorf("seed %d: %v", seed, worst)
	}
}

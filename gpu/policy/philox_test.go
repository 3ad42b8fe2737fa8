package policy

import (
	"math"
	"testing"
)

// The vectors are published by the authors of Philox with Random123.
func TestPhiloxEqualsThePublishedVectors(t *testing.T) {
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{^uint32(0), ^uint32(0), ^uint32(0), ^uint32(0)}, [2]uint32{^uint32(0), ^uint32(0)},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox(c.counter, c.key); got != c.want {
			t.Errorf("Philox(%08x, %08x) = %08x, want %08x", c.counter, c.key, got, c.want)
		}
	}
}

func TestUniformLiesStrictlyBetween0And1AndHasTheRightMoments(t *testing.T) {
	const n = 1 << 16
	var sum, squares float64
	for i := range uint32(n) {
		u := Uniform(7, i, 3, 0)
		if u <= 0 || u >= 1 {
			t.Fatalf("Uniform of environment %d = %v", i, u)
		}
		sum, squares = sum+float64(u), squares+float64(u)*float64(u)
	}
	if mean := sum / n; math.Abs(mean-0.5) > 0.005 {
		t.Errorf("mean = %v, want 0.5", mean)
	}
	if second := squares / n; math.Abs(second-1.0/3) > 0.005 {
		t.Errorf("mean square = %v, want 1/3", second)
	}
}

func TestUniformDependsOnEveryKey(t *testing.T) {
	base := Uniform(1, 2, 3, 4)
	for name, u := range map[string]float32{"seed": Uniform(2, 2, 3, 4), "high seed": Uniform(1|1<<40, 2, 3, 4),
		"environment": Uniform(1, 3, 3, 4), "step": Uniform(1, 2, 4, 4), "high step": Uniform(1, 2, 3|1<<40, 4),
		"draw": Uniform(1, 2, 3, 5)} {
		if u == base {
			t.Errorf("another %s draws the same number", name)
		}
	}
}

func TestS1RunsWithDifferentSeedsShareNoStream(t *testing.T) {
	seen := map[[4]uint32]uint64{}
	for seed := range uint64(10) {
		for env := range uint32(50) {
			for step := range uint32(20) {
				word := Philox([4]uint32{step, 0, env, 0}, philoxKey(seed))
				if other, ok := seen[word]; ok {
					t.Fatalf("seeds %d and %d share a number", seed, other)
				}
				seen[word] = seed
			}
		}
	}
}

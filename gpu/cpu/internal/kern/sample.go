package kern

import "math/bits"

// Illegal is the logit of an action that a mask forbids: its probability is exactly 0.
const Illegal = -1e30

// Lanes is the number of rows that the kernels over logits handle at a time. Their buffers have room for a
// multiple of it, whatever Rows is.
const Lanes = 8

// Sample describes the choice of an action for every row from Logits[a*LD + r].
//
// The action is the first whose cumulated probability exceeds the row's uniform number (word 0 of Philox for the
// counter {step, step, Env + r, 0} and the key Seed), or with Greedy the first of the most probable ones.
type Sample struct {
	Rows, Actions int
	Logits        []float32 // [Actions][LD], overwritten
	LD            int
	Seed, Step    uint64
	Env           uint32 // of row 0
	Greedy        bool
	Action        []int32
	LogProb       []float32
	Scratch       []float32 // Actions*Lanes
}

func (s *Sample) check() {
	if s.Rows < 0 || s.Actions < 1 || s.LD < (s.Rows+Lanes-1)/Lanes*Lanes {
		panic("kern: size of a sample")
	}
	if s.Rows > 0 {
		_, _, _ = s.Logits[s.Actions*s.LD-1], s.Action[s.Rows-1], s.LogProb[s.Rows-1]
		_ = s.Scratch[s.Actions*Lanes-1]
	}
}

func (s *Sample) generic() {
	for r := range s.Rows {
		largest := s.Logits[r]
		for a := 1; a < s.Actions; a++ {
			largest = max(largest, s.Logits[a*s.LD+r])
		}
		var sum float32
		for a := range s.Actions {
			sum += exp(s.Logits[a*s.LD+r] - largest)
		}
		a := s.pick(r, largest, sum)
		s.Action[r] = int32(a)
		s.LogProb[r] = s.Logits[a*s.LD+r] - largest - log(sum)
	}
}

// pick never leaves the range of actions, whatever the logits are.
func (s *Sample) pick(r int, largest, sum float32) int {
	target := sum * uniform(s.Seed, s.Env+uint32(r), s.Step)
	var cumulated float32
	for a := range s.Actions {
		x := s.Logits[a*s.LD+r]
		if s.Greedy && x >= largest {
			return a
		}
		cumulated += exp(x - largest)
		if !s.Greedy && cumulated > target {
			return a
		}
	}
	return s.Actions - 1
}

// uniform is policy.Uniform with draw 0, restated because kernels know nothing of policies.
func uniform(seed uint64, env uint32, step uint64) float32 {
	c := [4]uint32{uint32(step), uint32(step >> 32), env, 0}
	k0, k1 := uint32(seed), uint32(seed>>32)
	for range 10 {
		hi0, lo0 := bits.Mul32(0xd2511f53, c[0])
		hi1, lo1 := bits.Mul32(0xcd9e8d57, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0}
		k0 += 0x9e3779b9
		k1 += 0xbb67ae85
	}
	return (float32(c[0]>>9) + 0.5) * 0x1p-23
}

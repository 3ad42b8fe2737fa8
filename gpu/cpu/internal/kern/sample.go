package kern

import "github.com/rlhost/rlhost/gpu/policy"

// Illegal is the logit of an action that a mask forbids: its probability is exactly 0.
const Illegal = -1e30

// Lanes is the number of rows that the kernels over logits handle at a time. Their buffers have room for a
// multiple of it, whatever Rows is.
const Lanes = 8

// Sample describes the choice of an action for every row from Logits[a*LD + r].
//
// The action is the first whose cumulated probability exceeds the row's policy.Uniform of Draw, or with Greedy the
// first of the most probable ones.
type Sample struct {
	Rows, Actions int
	Logits        []float32 // [Actions][LD], overwritten
	LD            int
	Seed, Step    uint64
	Env           uint32   // of row 0, or
	Places        []uint32 // added to Env for each row; nil: the row's number
	Draw          uint32   // within the env step
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
	if s.Places != nil && len(s.Places) < s.Rows {
		panic("kern: places of a sample")
	}
}

// place returns a row's place, counted from its first environment.
func place(places []uint32, row int) uint32 {
	if places == nil {
		return uint32(row)
	}
	return places[row]
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
	target := sum * policy.Uniform(s.Seed, s.Env+place(s.Places, r), s.Step, s.Draw)
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

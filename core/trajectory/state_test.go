package trajectory

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// Acting on a row reads one row of the state and writes another one, and states at whole chunks stay.
func TestStateRow_ReadsAndWritesApart(t *testing.T) {
	for _, shape := range []Shape{{Steps: 12, Memory: Memory{Chunk: 4}}, {Steps: 3, Memory: Memory{Chunk: 1}}, {Steps: 7}, {Steps: 1}} {
		shape.Envs, shape.State = 2, 5
		s, err := NewSchema(testkit.Spec(4, 2, false), shape)
		if err != nil {
			t.Fatal(err)
		}
		l, ok := s.Layout(CoreState)
		if !ok || !s.Has(Age) || s.Has(PastReward) {
			t.Fatalf("%v: state %v, ages %v, past rewards %v", shape, ok, s.Has(Age), s.Has(PastReward))
		}
		kept := map[int]int{} // time of the state in each row
		for step := range shape.Steps {
			from, to := s.StateRow(step), s.StateRow(step+1)
			if from == to || to >= l.Rows || step > 0 && kept[from] != step {
				t.Fatalf("%v: step %d reads row %d of time %d and writes row %d of %d", shape, step, from, kept[from], to, l.Rows)
			}
			kept[to] = step + 1
		}
		for step := s.Shape.chunk(); step <= shape.Steps; step += s.Shape.chunk() {
			if kept[s.StateRow(step)] != step {
				t.Errorf("%v: the state of step %d is gone", shape, step)
			}
		}
	}
	if _, err := NewSchema(testkit.Spec(4, 2, false), Shape{Steps: 12, Envs: 2, Memory: Memory{State: 5, Chunk: 5}}); err == nil || !strings.Contains(err.Error(), "each 5 of 12 steps") {
		t.Errorf("chunks of 5 in 12 steps: %v", err)
	}
}

// The state follows the observation: into the next block, and through a snapshot.
func TestS19StateCrossesSeams(t *testing.T) {
	s, err := NewSchema(testkit.Spec(4, 2, false), Shape{Steps: 6, Envs: 2, Memory: Memory{State: 3, Chunk: 2}})
	if err != nil {
		t.Fatal(err)
	}
	block := func() Trajectory { return Trajectory{Schema: s, Mem: make([]byte, s.Bytes)} }
	state := func(tr Trajectory, row int) []float32 { return tr.Row(CoreState, s.StateRow(row)).Float32()[:6] }
	for _, row := range []int{3, 6} {
		from, next, loaded := block(), block(), block()
		for i := range state(from, row) {
			state(from, row)[i] = float32(i + 1)
		}
		from.Ages(row)[1] = 7
		next.CopyObserved(0, from, row)
		saved := make([]byte, s.ObservedBytes())
		from.SaveObserved(saved, row)
		loaded.LoadObserved(0, saved)
		for _, tr := range []Trajectory{next, loaded} {
			if got := state(tr, 0); got[0] != 1 || got[5] != 6 || tr.Ages(0)[1] != 7 {
				t.Errorf("from row %d: state %v, ages %v", row, got, tr.Ages(0))
			}
		}
	}
}

// A row that was saved in one layout is the same row in the other.
func TestRelaid_HasTheSameNumbers(t *testing.T) {
	for _, soa := range []bool{false, true} {
		s, err := NewSchema(testkit.Spec(4, 2, true), Shape{Steps: 6, Envs: 3, SoA: soa, Memory: Memory{State: 3, Chunk: 2}})
		if err != nil {
			t.Fatal(err)
		}
		is, err := s.NewDecisions()
		if err != nil {
			t.Fatal(err)
		}
		was, err := s.NewRelaid()
		if err != nil {
			t.Fatal(err)
		}
		saved := make([]byte, s.ObservedBytes())
		for i := range saved {
			saved[i] = byte(i)
		}
		was.LoadObserved(0, saved)
		is.CopyAll(was)
		a, b := was.Row(Obs, 0), is.Row(Obs, 0)
		for env := range a.Rows {
			for i := range a.Elems {
				if a.Bits(env, i) != b.Bits(env, i) {
					t.Errorf("soa %t: element %d of environment %d is %x, want %x", soa, i, env, b.Bits(env, i), a.Bits(env, i))
				}
			}
		}
		relaid, again := make([]byte, len(saved)), make([]byte, len(saved))
		is.SaveObserved(relaid, 0)
		was.CopyAll(is)
		was.SaveObserved(again, 0)
		if bytes.Equal(relaid, saved) || !bytes.Equal(again, saved) {
			t.Errorf("soa %t: %x in the other layout is %x, and back %x", soa, saved, relaid, again)
		}
	}
}

func TestMemory_AndIsEnoughForBoth(t *testing.T) {
	for _, c := range []struct{ a, b, want Memory }{
		{Memory{Past: 3}, Memory{State: 8, Chunk: 16}, Memory{Past: 3, State: 8, Chunk: 16}},
		{Memory{State: 8, Chunk: 16}, Memory{State: 64, Chunk: 24}, Memory{State: 64, Chunk: 8}},
		{Memory{}, Memory{Past: 1}, Memory{Past: 1}},
	} {
		if got, back := c.a.And(c.b), c.b.And(c.a); got != c.want || back != got {
			t.Errorf("%+v and %+v are %+v, and %+v, want %+v", c.a, c.b, got, back, c.want)
		}
	}
}

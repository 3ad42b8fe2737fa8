package member

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/pipeline/placement"
)

// weightsOfSize makes weights in an arena of their own.
func weightsOfSize(t *testing.T, number uint64, size int) version {
	t.Helper()
	a, err := arena.NewSet().Add(arena.Config{Name: "weights", Blocks: 1, BlockBytes: size})
	if err != nil {
		t.Fatal(err)
	}
	loan, err := a.Loan()
	if err != nil {
		t.Fatal(err)
	}
	for i := range loan.Bytes() {
		loan.Bytes()[i] = byte(number)
	}
	h, err := loan.Commit()
	if err != nil {
		t.Fatal(err)
	}
	lease, err := a.Lease(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, err := range []error{lease.Release(), a.Release(h), a.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return version{number, lease}
}

// A host is sent small weights once, and hears of large ones by their number.
func TestMessage_HasSmallWeightsOnce(t *testing.T) {
	a := &Away{sent: map[string]map[string]uint64{}, published: map[string]version{"big": weightsOfSize(t, 7, smallWeights+1)}}
	publish := func(number uint64) { a.published["pi"] = weightsOfSize(t, number, 5000) }
	told := func(key string) []byte {
		return slices.Clone(a.message(key, &hostState{Weights: map[string]uint64{"big": 7, "pi": 1}, Freed: []freed{{"rollout[0]", 2, 9}}}))
	}
	for i, step := range []struct {
		before func()
		key    string
		want   uint64 // of pi; 0: none
	}{
		{func() { publish(3) }, "a", 3}, {func() {}, "a", 0}, {func() {}, "b", 3}, {func() { publish(4) }, "a", 4},
		{func() { delete(a.sent, "a") }, "a", 4}, {func() { publish(2) }, "a", 2}, // another run's
	} {
		step.before()
		s, err := readState(told(step.key))
		if err != nil || len(s.Freed) != 1 || s.Freed[0].Blocks != 9 || s.Weights["big"] != 7 {
			t.Fatalf("step %d: %+v, %v", i, s, err)
		}
		w, with := s.bodies["pi"]
		pi := a.published["pi"]
		switch {
		case step.want == 0 && len(s.bodies) == 0:
		case with && len(s.bodies) == 1 && w.number == step.want && s.Weights["pi"] == step.want && bytes.Equal(w.bytes, pi.lease.Bytes()):
		default:
			t.Errorf("step %d: weights of %d publishers, version %d, want %d", i, len(s.bodies), w.number, step.want)
		}
	}
	whole := told("c")
	for n := range whole {
		if _, err := readState(whole[:n]); err == nil {
			t.Fatalf("%d of %d bytes are read as a state", n, len(whole))
		}
	}
}

func FuzzReadState_RefusesWhatIsNone(f *testing.F) {
	f.Add([]byte("\x0f\x00\x00\x00{\"with\":[\"pi\"]}\x03\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00w"))
	f.Add([]byte("\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := readState(b)
		if err != nil {
			return
		}
		for _, name := range s.With {
			if w, with := s.bodies[name]; !with || len(w.bytes) == 0 {
				t.Fatalf("weights of %q are announced, and %d bytes of them are there", name, len(w.bytes))
			}
		}
	})
}

// Hosts hear of new weights at once, but for the ones that have no block to fill: these hear of them with the next block.
func TestActing_LeavesOutHostsThatWait(t *testing.T) {
	blocks, err := arena.NewSet().Add(arena.Config{Name: "blocks", Blocks: 2 + spare, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blocks.Close(); err != nil {
			t.Error(err)
		}
	})
	rollout := &source{name: "rollout", runs: true}
	a := &Away{
		places: &places{
			here:   map[string]placement.Host{"a": {}, "b": {}},
			shares: []*share{{Number: 1, Instances: []string{"rollout", "inference"}, key: "a"}},
		},
		sources: map[string]*source{"rollout": rollout, "inference": {name: "inference"}},
	}
	check := func(when string, want ...string) {
		t.Helper()
		got := a.acting()
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	check("before it sends", "a", "b")
	rollout.in, rollout.arena = &cluster.Incoming{}, blocks
	check("with two blocks to fill", "a", "b")
	rollout.stored = 1
	check("with one", "a", "b")
	rollout.stored = 2
	check("with none", "b")
	rollout.freed = 1
	check("with one that it has not heard of", "b")
	rollout.told = 1
	check("with one that it has heard of", "a", "b")
}

// A host hears of free blocks once the run's own host has half of them at most, and of fewer where nobody has told it for a while.
func TestTellAll_LetsBlocksGather(t *testing.T) {
	blocks, err := arena.NewSet().Add(arena.Config{Name: "blocks", Blocks: 4 + spare, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := blocks.Close(); err != nil {
			t.Error(err)
		}
	})
	a := &Away{places: &places{}}
	s := &source{away: a, name: "rollout", of: "a", in: &cluster.Incoming{}, arena: blocks, stored: 4}
	a.sources = map[string]*source{"rollout": s}
	for i, step := range []struct {
		stored, freed uint64
		late          bool
		told          uint64
	}{
		{4, 1, false, 0}, {4, 2, false, 2}, {4, 3, false, 3}, {7, 4, false, 3}, {7, 4, true, 4}, {7, 5, false, 5},
	} {
		s.stored, s.freed = step.stored, step.freed
		if s.tellAll(nil); step.late {
			a.tellFreed()
		}
		if s.told != step.told {
			t.Errorf("step %d: the host knows of %d free blocks, want %d", i, s.told, step.told)
		}
	}
}

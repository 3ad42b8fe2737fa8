package store

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/objects/wire"
)

func tracks(bytes int) []wire.Track { return []wire.Track{{Bytes: bytes}} }

func TestGrow_KeepsEntriesIndicesAndWriters(t *testing.T) {
	s := newStore(t, Limits{})
	u, reader := newSession(t, s), newSession(t, s)
	id := create(t, s, "x", 3)
	for i := range 3 {
		write(t, u, id, byte(10+i))
	}
	must(t, u, Op{Kind: OpDelete, Object: id, Index: 0})
	held := must(t, reader, Op{Kind: OpRead, Object: id, Index: 1})
	w := must(t, u, Op{Kind: OpNew, Object: id})
	s.block(id, 0, w.Block)[0] = 77
	former := s.objects[id]
	latest := async(t, reader, Op{Kind: OpLatest, Object: id, Index: 9, Wait: wire.Forever})
	room := async(t, reader, Op{Kind: OpNew, Object: id, Wait: wire.Forever})

	grown, err := s.Grow("x", wire.Config{Capacity: 5, Tracks: tracks(100)})
	if err != nil || grown == id {
		t.Fatalf("Grow = %d, %v", grown, err)
	}
	for _, over := range []<-chan *Op{latest, room} {
		if op := wait(t, over); !errors.Is(op.Err, wire.ErrRemoved) {
			t.Errorf("who waited gets %v, want ErrRemoved", op.Err)
		}
	}
	if c := must(t, u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1), Next: true}); c.Index != 3 || c.Spare != 0 {
		t.Errorf("the entry that was being written has index %d and spare %d, want 3 and none", c.Index, c.Spare)
	}
	for index, want := range map[uint64]byte{1: 11, 2: 12, 3: 77} {
		got := must(t, reader, Op{Kind: OpRead, Object: grown, Index: index})
		if mark(s, grown, got) != want || !equal(got.Views[0].Values, floats(1)) {
			t.Errorf("entry %d holds %d as %v, want %d", index, mark(s, grown, got), got.Views[0].Values, want)
		}
		must(t, reader, Op{Kind: OpRelease, Claim: got.Claim})
	}
	refused(t, reader, Op{Kind: OpRead, Object: grown, Index: 0}, wire.ErrNoEntry)
	got := stat(t, s, grown)
	if got.Origin != id || got.Entries != 3 || got.Next != 4 || got.Config.Capacity != 5 || got.Config.Tracks[0].Bytes != 100 || got.Counters.Deletes != 1 {
		t.Errorf("it is %+v now", got)
	}
	if at := former.columns[0].At + int(held.Views[0].Block)*former.columns[0].Stride; former.seg.Bytes()[at] != 11 {
		t.Error("a reader has lost the entry that it has claimed")
	}
	refused(t, reader, Op{Kind: OpLock, Claim: held.Claim, Alone: true}, wire.ErrRemoved)
	must(t, reader, Op{Kind: OpRelease, Claim: held.Claim})
	if former.seg != nil {
		t.Error("nobody has a claim, and its memory is there still")
	}
}

func equal(a, b []wire.Value) bool { return len(a) == len(b) && a[0] == b[0] }

func TestGrow_DoesNothingWhereThereIsRoomAndMakesWhatIsMissing(t *testing.T) {
	s := newStore(t, Limits{Bytes: 64 << 10})
	id, err := s.Grow("x", wire.Config{Capacity: 2, Tracks: tracks(64)})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.Grow("x", wire.Config{Capacity: 1, Tracks: tracks(60)}); err != nil || again != id {
		t.Errorf("Grow of what is large enough = %d, %v, want %d", again, err, id)
	}
	if _, err := s.Grow("x", wire.Config{Capacity: 1, Tracks: append(tracks(1), tracks(1)...)}); !errors.Is(err, wire.ErrTracks) {
		t.Errorf("Grow by a track = %v, want ErrTracks", err)
	}
	if _, err := s.Grow("x", wire.Config{Capacity: 1, Tracks: tracks(1 << 20)}); !errors.Is(err, wire.ErrLimit) {
		t.Errorf("Grow beyond the store's memory = %v, want ErrLimit", err)
	}
	u := newSession(t, s)
	index := write(t, u, id, 1)
	r := must(t, u, Op{Kind: OpRead, Object: id, Index: index})
	must(t, u, Op{Kind: OpLock, Claim: r.Claim, Alone: true})
	if _, err := s.Grow("x", wire.Config{Capacity: 1, Tracks: tracks(128)}); !errors.Is(err, wire.ErrBusy) {
		t.Errorf("Grow while an entry is written in place = %v, want ErrBusy", err)
	}
	must(t, u, Op{Kind: OpUnlock, Claim: r.Claim})
	if larger, err := s.Grow("x", wire.Config{Capacity: 1, Tracks: tracks(65)}); err != nil || stat(t, s, larger).Config.Tracks[0].Bytes != 96 {
		t.Errorf("Grow by a byte = %v, want blocks half as large again", err)
	}
}

func TestGrow_CommitsThatWaitForRoomComeInTheirOrder(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 1)
	spare := must(t, u, Op{Kind: OpSpare, Object: id})
	write(t, newSession(t, s), id, 1)
	commit := async(t, u, Op{Kind: OpCommit, Claim: spare.Claim, Values: floats(1), Wait: wire.Forever})
	grown, err := s.Grow("x", wire.Config{Capacity: 1, Tracks: tracks(100)})
	if err != nil {
		t.Fatal(err)
	}
	pop := must(t, u, Op{Kind: OpPop, Object: grown})
	must(t, u, Op{Kind: OpRelease, Claim: pop.Claim})
	if op := wait(t, commit); op.Err != nil || op.Index != 1 {
		t.Errorf("the commit that waited has index %d, %v, want 1", op.Index, op.Err)
	}
	if got := stat(t, s, grown); got.Entries != 1 || got.Claims != 0 {
		t.Errorf("it is %+v now", got)
	}
}

// TestGrow_LosesAndDoublesNothing grows an object while others push and pop.
func TestGrow_LosesAndDoublesNothing(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newStore(t, Limits{})
	create(t, s, "x", 4)
	const writers, each = 3, 200
	var mu sync.Mutex
	got := map[uint64]byte{}
	var all sync.WaitGroup
	// on does an operation on what is the object of the name now.
	on := func(u *Session, op Op) *Op {
		for {
			open := do(u, Op{Kind: OpOpen, Name: "x"})
			op.Object = open.Object
			done := do(u, op)
			if !errors.Is(done.Err, wire.ErrRemoved) {
				return done
			}
		}
	}
	push := func(u *Session, r *rand.Rand) {
		w := on(u, Op{Kind: OpNew, Wait: wire.Forever})
		if r.IntN(4) == 0 {
			for range r.IntN(300) {
				runtime.Gosched() // the object may grow meanwhile
			}
		}
		if c := do(u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1), Wait: wire.Forever}); w.Err != nil || c.Err != nil {
			t.Errorf("push: %v, %v", w.Err, c.Err)
		}
	}
	for n := range writers {
		all.Go(func() {
			u, r := newSession(t, s), rand.New(rand.NewPCG(seed, uint64(n)))
			for range each {
				push(u, r)
			}
		})
		all.Go(func() {
			u := newSession(t, s)
			for range each {
				op := on(u, Op{Kind: OpPop, Wait: wire.Forever})
				mu.Lock()
				got[op.Index]++
				mu.Unlock()
				do(u, Op{Kind: OpRelease, Claim: op.Claim})
			}
		})
	}
	for size := 65; size < 20000; size += size / 2 {
		if _, err := s.Grow("x", wire.Config{Capacity: 4, Tracks: tracks(size)}); err != nil {
			t.Error(err)
		}
		for range 1000 {
			runtime.Gosched() // others have their turns
		}
	}
	all.Wait()
	for index := range uint64(writers * each) {
		if got[index] != 1 {
			t.Fatalf("entry %d was popped %d times, want once", index, got[index])
		}
	}
	open := do(newSession(t, s), Op{Kind: OpOpen, Name: "x"})
	if now := stat(t, s, open.Object); now.Claims != 0 || now.Next != writers*each {
		t.Errorf("it is %+v now", now)
	}
}

package store

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/hostabi"
)

func TestRevoke_ReadersKeepTheirBytesAndTheBlockIsNotReused(t *testing.T) {
	s := newStore(t, Limits{})
	writer, reader := newSession(t, s), newSession(t, s)
	id := create(t, s, "x", 2)
	index := write(t, writer, id, 1)
	held := must(t, reader, Op{Kind: OpRead, Object: id, Index: index})

	refused(t, writer, Op{Kind: OpDelete, Object: id, Index: index}, wire.ErrBusy)
	must(t, writer, Op{Kind: OpDelete, Object: id, Index: index, Revoke: true})
	for range 10 {
		newer := write(t, writer, id, 2)
		must(t, writer, Op{Kind: OpDelete, Object: id, Index: newer})
	}
	if got := mark(s, id, held); got != 1 {
		t.Errorf("the reader sees %d, want what it claimed: 1", got)
	}
	refused(t, writer, Op{Kind: OpRead, Object: id, Index: index}, wire.ErrNoEntry)
	if got := stat(t, s, id); got.Kept != 1 || got.Entries != 0 {
		t.Errorf("%d blocks are kept and %d reachable, want 1 and 0", got.Kept, got.Entries)
	}
	must(t, reader, Op{Kind: OpRelease, Claim: held.Claim})
	if got := stat(t, s, id); got.Kept != 0 || got.Claims != 0 {
		t.Errorf("after the release %d blocks are kept and %d claims open, want none", got.Kept, got.Claims)
	}
}

func TestPop_LeavesOtherReadersTheirBytes(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 1)
	index := write(t, u, id, 7)
	held := must(t, u, Op{Kind: OpRead, Object: id, Index: index})
	popped := must(t, u, Op{Kind: OpPop, Object: id})
	must(t, u, Op{Kind: OpRelease, Claim: popped.Claim})
	refused(t, u, Op{Kind: OpNew, Object: id}, wire.ErrFull)
	if got := mark(s, id, held); got != 7 {
		t.Errorf("the reader sees %d, want 7", got)
	}
	must(t, u, Op{Kind: OpRelease, Claim: held.Claim})
	must(t, u, Op{Kind: OpNew, Object: id})
}

func TestDoubleFree_IsAnErrorAndGivesNoBlockTwice(t *testing.T) {
	s := newStore(t, Limits{})
	u, other := newSession(t, s), newSession(t, s)
	id := create(t, s, "x", 4)
	w := must(t, u, Op{Kind: OpNew, Object: id})
	refused(t, other, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1)}, wire.ErrForeign)
	refused(t, other, Op{Kind: OpAbort, Claim: w.Claim}, wire.ErrForeign)
	refused(t, u, Op{Kind: OpRelease, Claim: w.Claim}, wire.ErrKind)
	must(t, u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1)})
	refused(t, u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1)}, wire.ErrSpent)
	refused(t, u, Op{Kind: OpAbort, Claim: w.Claim}, wire.ErrSpent)

	r := must(t, u, Op{Kind: OpPop, Object: id})
	refused(t, other, Op{Kind: OpRelease, Claim: r.Claim}, wire.ErrForeign)
	must(t, u, Op{Kind: OpRelease, Claim: r.Claim})
	refused(t, u, Op{Kind: OpRelease, Claim: r.Claim}, wire.ErrSpent)
	refused(t, u, Op{Kind: OpRelease, Claim: 0}, wire.ErrSpent)
	refused(t, u, Op{Kind: OpRelease, Claim: 1 << 60}, wire.ErrSpent)

	blocks := map[uint32]bool{}
	for range 4 {
		w := must(t, u, Op{Kind: OpNew, Object: id})
		if blocks[w.Block] {
			t.Errorf("block %d has two writers", w.Block)
		}
		blocks[w.Block] = true
	}
	checkStore(t, s)
}

func TestErrors_LeaveNoLockHeld(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 1)
	if _, err := s.Create("x", wire.Config{Capacity: 1, Tracks: []wire.Track{{Bytes: 1}}}, false); !errors.Is(err, wire.ErrExists) {
		t.Errorf("Create of a name that exists = %v, want ErrExists", err)
	}
	if err := s.Remove(99); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Remove of nothing = %v, want ErrNotFound", err)
	}
	refused(t, u, Op{Kind: OpPop, Object: 99}, wire.ErrNotFound)
	refused(t, u, Op{Kind: OpKind(200), Object: id}, wire.ErrRequest)
	refused(t, u, Op{Kind: OpBatch, Object: id}, wire.ErrRequest)
	write(t, u, id, 1) // would wait forever
}

func TestOversize_IsRefusedByNameAndLimitAndLeaksNothing(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "obs", 2)
	w := must(t, u, Op{Kind: OpNew, Object: id})
	for _, c := range []struct {
		name   string
		values []wire.Value
		want   error
	}{
		{"one element too many", floats(17), wire.ErrTooLarge},
		{"a product that overflows", []wire.Value{wire.ValueOf(wire.DType(hostabi.F32), 1<<40, 1<<40)}, wire.ErrTooLarge},
		{"no such type", []wire.Value{wire.ValueOf(99, 1)}, wire.ErrDType},
		{"any type", []wire.Value{wire.ValueOf(wire.AnyDType, 1)}, wire.ErrDType},
		{"too many dimensions", []wire.Value{{DType: wire.Bytes, Rank: 9}}, wire.ErrLimit},
		{"a track too many", append(floats(1), floats(1)...), wire.ErrTracks},
		{"no track", nil, wire.ErrTracks},
	} {
		op := do(u, Op{Kind: OpCommit, Claim: w.Claim, Values: c.values})
		if !errors.Is(op.Err, c.want) || !strings.Contains(op.Err.Error(), `object "obs": entry 0`) {
			t.Errorf("%s: %v, want %v with object and entry", c.name, op.Err, c.want)
		}
	}
	if err := do(u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(17)}).Err; !strings.Contains(err.Error(), "64 bytes") {
		t.Errorf("the error does not name the limit: %v", err)
	}
	must(t, u, Op{Kind: OpAbort, Claim: w.Claim})
	if got := stat(t, s, id); got.Writing != 0 || got.Claims != 0 {
		t.Errorf("%d blocks are being written and %d claims open, want none", got.Writing, got.Claims)
	}
}

func TestBlocks_DoNotReachEachOther(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id, err := s.Create("x", wire.Config{Capacity: 3, Tracks: []wire.Track{{Bytes: 100}, {Bytes: 5000}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w := must(t, u, Op{Kind: OpNew, Object: id})
		for track, size := range []int{100, 5000} {
			b := s.block(id, track, w.Block)
			if len(b) != size || cap(b) != size {
				t.Fatalf("block %d of track %d has %d bytes and room for %d, want %d", w.Block, track, len(b), cap(b), size)
			}
			for i := range b {
				if b[i] != 0 {
					t.Fatalf("byte %d of block %d of track %d was written through another block", i, w.Block, track)
				}
				b[i] = byte(w.Block + 1)
			}
		}
	}
}

func TestSessionEnd_GivesBackWhatItWroteAndRead(t *testing.T) {
	s := newStore(t, Limits{})
	stays := newSession(t, s)
	id := create(t, s, "x", 3)
	index := write(t, stays, id, 1)
	write(t, stays, id, 2)

	dies := newSession(t, s)
	must(t, dies, Op{Kind: OpNew, Object: id})
	must(t, dies, Op{Kind: OpSpare, Object: id})
	must(t, dies, Op{Kind: OpRead, Object: id, Index: index})
	must(t, dies, Op{Kind: OpPop, Object: id})
	must(t, dies, Op{Kind: OpBatch, Object: id, Indices: []uint64{index + 1, index + 1}})
	waiting := async(t, dies, Op{Kind: OpNew, Object: id, Wait: wire.Forever})
	room := async(t, stays, Op{Kind: OpNew, Object: id, Wait: wire.Forever})
	if err := dies.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if op := wait(t, waiting); !errors.Is(op.Err, wire.ErrClosed) {
		t.Errorf("what the session waited for ended in %v, want ErrClosed", op.Err)
	}
	if op := wait(t, room); op.Err != nil {
		t.Errorf("who waited for room got %v", op.Err)
	}
	got := stat(t, s, id)
	if got.Entries != 1 || got.Writing != 1 || got.Kept != 0 || got.Spares != 0 || got.Claims != 1 {
		t.Errorf("left are %+v, want one entry and one writer", got)
	}
	if err := dies.Close(); !errors.Is(err, wire.ErrClosed) {
		t.Errorf("second Close = %v, want ErrClosed", err)
	}
	refused(t, dies, Op{Kind: OpLatest, Object: id}, wire.ErrClosed)
}

func TestWaiting_IsWokenByWhatItWaitsFor(t *testing.T) {
	s := newStore(t, Limits{})
	u, other := newSession(t, s), newSession(t, s)
	id := create(t, s, "x", 1)
	latest := async(t, other, Op{Kind: OpLatest, Object: id, Wait: wire.Forever})
	read := async(t, other, Op{Kind: OpRead, Object: id, Index: 0, Wait: wire.Forever})
	later := async(t, other, Op{Kind: OpLatest, Object: id, Index: 1, Wait: wire.Forever})
	pop := async(t, other, Op{Kind: OpPop, Object: id, Wait: wire.Forever})
	write(t, u, id, 5)
	var claims []uint64
	for _, over := range []<-chan *Op{latest, read, pop} {
		op := wait(t, over)
		if op.Err != nil || mark(s, id, op) != 5 {
			t.Fatalf("operation %d woke with %v", op.Kind, op.Err)
		}
		claims = append(claims, op.Claim)
	}
	room := async(t, u, Op{Kind: OpNew, Object: id, Wait: wire.Forever})
	for _, claim := range claims {
		must(t, other, Op{Kind: OpRelease, Claim: claim})
	}
	w := wait(t, room)
	must(t, u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1)})
	if op := wait(t, later); op.Err != nil || op.Index != 1 {
		t.Errorf("the wait for entry 1 ended with %d, %v", op.Index, op.Err)
	}
	checkStore(t, s)
}

func TestWaiting_EndsAtItsDeadlineWithTheReason(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 1)
	refused(t, u, Op{Kind: OpPop, Object: id, Wait: time.Millisecond}, wire.ErrEmpty)
	refused(t, u, Op{Kind: OpLatest, Object: id, Wait: time.Millisecond}, wire.ErrEmpty)
	refused(t, u, Op{Kind: OpRead, Object: id, Wait: time.Millisecond}, wire.ErrNoEntry)
	refused(t, u, Op{Kind: OpOpen, Name: "y", Wait: time.Millisecond}, wire.ErrNotFound)
	write(t, u, id, 1)
	refused(t, u, Op{Kind: OpNew, Object: id, Wait: time.Millisecond}, wire.ErrFull)
	if got := stat(t, s, id); got.Waiting != 0 {
		t.Errorf("%d operations wait, want none", got.Waiting)
	}
}

func TestWaiting_EndsWithItsContext(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := u.Wait(ctx, &Op{Kind: OpPop, Object: id, Wait: wire.Forever}); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v, want context.Canceled", err)
	}
	write(t, u, id, 1)
	if got := stat(t, s, id); got.Entries != 1 {
		t.Errorf("the pop that was cancelled took an entry")
	}
}

func TestWaiting_IsFirstComeFirstServed(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 4)
	var over []<-chan *Op
	for range 4 {
		over = append(over, async(t, u, Op{Kind: OpPop, Object: id, Wait: wire.Forever}))
	}
	for i := range 4 {
		write(t, u, id, byte(i))
		if op := wait(t, over[i]); op.Index != uint64(i) {
			t.Errorf("the pop that came %d. got entry %d", i, op.Index)
		}
	}
}

func TestWaiting_IsBoundedForEachSession(t *testing.T) {
	s := newStore(t, Limits{Waiting: 2, Claims: 3})
	u := newSession(t, s)
	id := create(t, s, "x", 9)
	for range 2 {
		async(t, u, Op{Kind: OpPop, Object: id, Wait: wire.Forever})
	}
	refused(t, u, Op{Kind: OpPop, Object: id, Wait: wire.Forever}, wire.ErrLimit)
	other := newSession(t, s)
	for range 3 {
		must(t, other, Op{Kind: OpNew, Object: id})
	}
	refused(t, other, Op{Kind: OpNew, Object: id}, wire.ErrLimit)
}

func TestBatch_IsAllOrNothing(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 8)
	for i := range 6 {
		write(t, u, id, byte(i))
	}
	must(t, u, Op{Kind: OpDelete, Object: id, Index: 3})
	refused(t, u, Op{Kind: OpBatch, Object: id, Indices: []uint64{0, 1, 3}}, wire.ErrNoEntry)
	if got := stat(t, s, id).Claims; got != 0 {
		t.Errorf("a batch that failed left %d claims", got)
	}
	b := must(t, u, Op{Kind: OpBatch, Object: id, Indices: []uint64{5, 0, 4}})
	for i, want := range []byte{5, 0, 4} {
		if got := s.block(id, 0, b.Views[i].Block)[0]; got != want {
			t.Errorf("entry %d of the batch holds %d, want %d", i, got, want)
		}
	}
	must(t, u, Op{Kind: OpRelease, Claim: b.Claim})
	r := must(t, u, Op{Kind: OpBatch, Object: id, Index: 2, Most: 2})
	if r.Views[0].Index != 2 || r.Views[1].Index != 4 || len(r.Views) != 2 {
		t.Errorf("two entries from 2 on are %v, want 2 and 4", r.Views)
	}
	must(t, u, Op{Kind: OpRelease, Claim: r.Claim})
	refused(t, u, Op{Kind: OpBatch, Object: id, Index: 6, Most: 2}, wire.ErrNoEntry)
	if got := stat(t, s, id).Claims; got != 0 {
		t.Errorf("%d claims are left", got)
	}
}

func TestRemove_FailsWhoWaitsAndKeepsWhatIsRead(t *testing.T) {
	s := newStore(t, Limits{})
	u, other := newSession(t, s), newSession(t, s)
	id := create(t, s, "x", 2)
	write(t, u, id, 9)
	held := must(t, u, Op{Kind: OpLatest, Object: id})
	w := must(t, u, Op{Kind: OpNew, Object: id})
	spare := must(t, other, Op{Kind: OpSpare, Object: id})
	commit := async(t, other, Op{Kind: OpCommit, Claim: spare.Claim, Values: floats(1), Wait: wire.Forever})
	room := async(t, other, Op{Kind: OpNew, Object: id, Wait: wire.Forever})
	bytes := s.block(id, 0, held.Views[0].Block)
	if err := s.Remove(id); err != nil {
		t.Fatal(err)
	}
	for _, over := range []<-chan *Op{commit, room} {
		if op := wait(t, over); !errors.Is(op.Err, wire.ErrRemoved) {
			t.Errorf("who waited got %v, want ErrRemoved", op.Err)
		}
	}
	if bytes[0] != 9 || s.bytes == 0 {
		t.Errorf("the memory of a removed object went while it was read")
	}
	refused(t, u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1)}, wire.ErrRemoved)
	refused(t, u, Op{Kind: OpPop, Object: id}, wire.ErrRemoved)
	again := create(t, s, "x", 2)
	if again == id {
		t.Errorf("a new object has the number of a removed one")
	}
	must(t, u, Op{Kind: OpRelease, Claim: held.Claim})
	if other.held() != 0 || u.held() != 0 {
		t.Errorf("%d and %d claims are left", other.held(), u.held())
	}
	if err := s.Remove(again); err != nil || s.bytes != 0 {
		t.Errorf("Remove = %v, and %d bytes are left", err, s.bytes)
	}
}

func TestSpares_DoNotTakeRoomAndWaitForIt(t *testing.T) {
	s := newStore(t, Limits{})
	u, other := newSession(t, s), newSession(t, s)
	id, err := s.Create("x", wire.Config{Capacity: 1, Spares: 1, Tracks: []wire.Track{{Bytes: 64}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	spare := must(t, u, Op{Kind: OpSpare, Object: id})
	if got := must(t, u, Op{Kind: OpSpare, Object: id}); got.Claim != 0 {
		t.Errorf("a session got a second spare block")
	}
	if got := must(t, other, Op{Kind: OpSpare, Object: id}); got.Claim != 0 {
		t.Errorf("there are more spare blocks than configured")
	}
	index := write(t, other, id, 1) // takes all the room
	refused(t, u, Op{Kind: OpCommit, Claim: spare.Claim, Values: floats(1)}, wire.ErrFull)
	commit := async(t, u, Op{Kind: OpCommit, Claim: spare.Claim, Values: floats(1), Next: true, Wait: wire.Forever})
	refused(t, u, Op{Kind: OpAbort, Claim: spare.Claim}, wire.ErrSpent)
	refused(t, u, Op{Kind: OpCommit, Claim: spare.Claim, Values: floats(1)}, wire.ErrSpent)
	must(t, other, Op{Kind: OpDelete, Object: id, Index: index})
	op := wait(t, commit)
	if op.Err != nil || op.Index != index+1 || op.Spare == 0 {
		t.Errorf("the commit that waited: entry %d, spare %d, %v", op.Index, op.Spare, op.Err)
	}
	checkStore(t, s)
}

func TestLentBlocks_TakeNoRoomAndAreBounded(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id, err := s.Create("x", wire.Config{Capacity: 2, Spares: 1, Tracks: []wire.Track{{Bytes: 64}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	write(t, u, id, 1)
	write(t, u, id, 2)
	room := async(t, u, Op{Kind: OpNew, Object: id, Wait: wire.Forever})
	first := must(t, u, Op{Kind: OpPop, Object: id, Lend: true})
	if op := wait(t, room); op.Err != nil || !first.Lent {
		t.Errorf("a lent block (%v) takes room: %v", first.Lent, op.Err)
	}
	if got := must(t, u, Op{Kind: OpSpare, Object: id}); got.Claim != 0 {
		t.Errorf("a writer got the spare block that is lent")
	}
	second := must(t, u, Op{Kind: OpPop, Object: id, Lend: true})
	if second.Lent {
		t.Errorf("two blocks are lent, with one to spare")
	}
	refused(t, u, Op{Kind: OpNew, Object: id}, wire.ErrFull)
	if mark(s, id, first) != 1 || mark(s, id, second) != 2 {
		t.Errorf("the readers see %d and %d, want 1 and 2", mark(s, id, first), mark(s, id, second))
	}
	must(t, u, Op{Kind: OpRelease, Claim: first.Claim})
	must(t, u, Op{Kind: OpRelease, Claim: second.Claim})
	if got := stat(t, s, id); got.Lent != 0 || got.Kept != 0 || got.Writing != 1 {
		t.Errorf("left are %+v, want one block that is written", got)
	}
}

func TestOpen_WaitsUntilTheObjectIsMade(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	over := async(t, u, Op{Kind: OpOpen, Name: "later", Wait: wire.Forever})
	create(t, s, "sooner", 1)
	id := create(t, s, "later", 1)
	if op := wait(t, over); op.Err != nil || op.Object != id {
		t.Errorf("Open = %d, %v, want %d", op.Object, op.Err, id)
	}
}

func TestCreate_ChecksWhatItIsAskedFor(t *testing.T) {
	s := newStore(t, Limits{Objects: 2, Bytes: 1 << 20})
	one := []wire.Track{{Bytes: 1}}
	for _, c := range []struct {
		name   string
		config wire.Config
		want   error
	}{
		{"", wire.Config{Capacity: 1, Tracks: one}, wire.ErrLimit},
		{strings.Repeat("n", 256), wire.Config{Capacity: 1, Tracks: one}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 0, Tracks: one}, wire.ErrLimit},
		{"x", wire.Config{Capacity: -1, Tracks: one}, wire.ErrLimit},
		{"x", wire.Config{Capacity: wire.MaxCapacity + 1, Tracks: one}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1, Spares: wire.MaxSpares + 1, Tracks: one}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1, Tracks: make([]wire.Track, wire.MaxTracks+1)}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1, Tracks: []wire.Track{{}}}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1, Tracks: []wire.Track{{Bytes: -8}}}, wire.ErrLimit},
		{"x", wire.Config{Capacity: wire.MaxCapacity, Tracks: []wire.Track{{Bytes: 1 << 50}}}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1, Tracks: []wire.Track{{Bytes: 1<<62 - 1}}}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1, Tracks: []wire.Track{{Bytes: 1<<63 - 1}}}, wire.ErrLimit},
		{"x", wire.Config{Capacity: 1, Tracks: []wire.Track{{Bytes: 1, DType: 99}}}, wire.ErrDType},
		{"x", wire.Config{Capacity: 2, Tracks: []wire.Track{{Bytes: 1 << 19}}}, wire.ErrLimit},
	} {
		if _, err := s.Create(c.name, c.config, false); !errors.Is(err, c.want) {
			t.Errorf("Create %.9q %+v = %v, want %v", c.name, c.config, err, c.want)
		}
	}
	create(t, s, "a", 1)
	create(t, s, "b", 1)
	if _, err := s.Create("c", wire.Config{Capacity: 1, Tracks: one}, false); !errors.Is(err, wire.ErrLimit) {
		t.Errorf("a third object = %v, want ErrLimit", err)
	}
	if got := s.Names("", "", 9); len(got) != 2 || got[0] != "a" {
		t.Errorf("Names = %v", got)
	}
}

func TestCreate_ReusesWhatIsLargeEnough(t *testing.T) {
	s := newStore(t, Limits{})
	id, err := s.Create("x", wire.Config{Capacity: 1, Tracks: []wire.Track{{Bytes: 64, DType: wire.DType(hostabi.F32)}}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tracks []wire.Track
		want   error
	}{
		{[]wire.Track{{Bytes: 64}}, nil},
		{[]wire.Track{{Bytes: 8, DType: wire.DType(hostabi.F32)}}, nil},
		{[]wire.Track{{Bytes: 65}}, wire.ErrTooLarge},
		{[]wire.Track{{Bytes: 8}, {Bytes: 8}}, wire.ErrTracks},
		{[]wire.Track{{Bytes: 8, DType: wire.DType(hostabi.U8)}}, wire.ErrDType},
	} {
		got, err := s.Create("x", wire.Config{Capacity: 9, Tracks: c.tracks}, true)
		if !errors.Is(err, c.want) || err == nil && got != id {
			t.Errorf("Create with %+v = %d, %v, want %v", c.tracks, got, err, c.want)
		}
	}
	u := newSession(t, s)
	w := must(t, u, Op{Kind: OpNew, Object: id})
	refused(t, u, Op{Kind: OpCommit, Claim: w.Claim, Values: []wire.Value{wire.ValueOf(wire.DType(hostabi.F64), 1)}}, wire.ErrDType)
}

package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// newStore returns a store over ordinary memory, which the race detector can see.
func newStore(t testing.TB, l Limits) *Store {
	t.Helper()
	l.Segment = func(_ string, bytes int) (*shm.Segment, error) { return shm.Heap(bytes) }
	s := NewStore(l)
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, wire.ErrClosed) {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

func newSession(t testing.TB, s *Store) *Session {
	t.Helper()
	u, err := s.Session(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// create makes an object of one track of 64-byte blocks.
func create(t testing.TB, s *Store, name string, capacity int) uint32 {
	t.Helper()
	id, err := s.Create(name, wire.Config{Capacity: capacity, Tracks: []wire.Track{{Bytes: 64}}}, false)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// do runs an operation and returns it.
func do(u *Session, op Op) *Op {
	_ = u.Wait(context.Background(), &op) // also in op.Err
	return &op
}

// must runs an operation that has to succeed.
func must(t testing.TB, u *Session, op Op) *Op {
	t.Helper()
	done := do(u, op)
	if done.Err != nil {
		t.Fatalf("operation %d: %v", op.Kind, done.Err)
	}
	return done
}

// refused fails the test unless the operation ends in that error.
func refused(t testing.TB, u *Session, op Op, want error) {
	t.Helper()
	if got := do(u, op).Err; !errors.Is(got, want) {
		t.Errorf("operation %d = %v, want %v", op.Kind, got, want)
	}
}

func floats(n int) []wire.Value { return []wire.Value{wire.ValueOf(wire.DType(hostabi.F32), n)} }

// write makes an entry whose first byte is mark, and returns its index.
func write(t testing.TB, u *Session, id uint32, mark byte) uint64 {
	t.Helper()
	w := must(t, u, Op{Kind: OpNew, Object: id})
	u.store.block(id, 0, w.Block)[0] = mark
	return must(t, u, Op{Kind: OpCommit, Claim: w.Claim, Values: floats(1)}).Index
}

func mark(s *Store, id uint32, op *Op) byte { return s.block(id, 0, op.Views[0].Block)[0] }

// stat returns the state of an object, after a check of its invariants.
func stat(t testing.TB, s *Store, id uint32) wire.Stat {
	t.Helper()
	checkStore(t, s)
	got, err := s.Stat(id)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// async starts an operation that must wait.
func async(t testing.TB, u *Session, op Op) <-chan *Op {
	t.Helper()
	over := make(chan *Op, 1)
	op.Done = func(op *Op) { over <- op }
	u.Do(&op)
	select {
	case op := <-over:
		t.Fatalf("operation %d is over at once: %v", op.Kind, op.Err)
	default:
	}
	return over
}

func wait(t testing.TB, over <-chan *Op) *Op {
	t.Helper()
	select {
	case op := <-over:
		return op
	case <-time.After(10 * time.Second):
		t.Fatal("the operation that waited was not woken")
		return nil
	}
}

// checkStore checks the invariants between two turns.
func checkStore(t testing.TB, s *Store) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	readers, writers := map[*object]map[int32]int32{}, map[*object]map[int32]int{}
	claims := map[*object]int{}
	for _, u := range s.sessions {
		for _, c := range u.claims {
			if readers[c.object] == nil {
				readers[c.object], writers[c.object] = map[int32]int32{}, map[int32]int{}
			}
			blocks := c.batch
			if blocks == nil {
				blocks = []int32{c.block}
			}
			claims[c.object] += len(blocks)
			for _, b := range blocks {
				if c.kind == claimRead {
					readers[c.object][b]++
				} else {
					writers[c.object][b]++
				}
			}
		}
	}
	for _, o := range s.objects {
		checkObject(t, o, readers[o], writers[o], claims[o])
	}
}

func checkObject(t testing.TB, o *object, readers map[int32]int32, writers map[int32]int, claims int) {
	t.Helper()
	var states [5]int
	for b := range o.entries {
		e := &o.entries[b]
		states[e.state]++
		writing := e.state == stateWrite || e.state == stateSpare
		if e.readers != readers[int32(b)] || (writers[int32(b)] == 1) != writing {
			t.Fatalf("object %q: block %d in state %d has %d readers and %d writers, claims say %d readers", o.name, b, e.state,
				e.readers, writers[int32(b)], readers[int32(b)])
		}
		if e.state == stateZombie && e.readers == 0 {
			t.Fatalf("object %q: block %d is kept for nobody", o.name, b)
		}
	}
	lent := 0
	for b := range o.entries {
		if e := &o.entries[b]; e.lent {
			lent++
			if e.state != stateZombie {
				t.Fatalf("object %q: block %d in state %d is lent", o.name, b, e.state)
			}
		}
	}
	used := states[stateWrite] + states[stateLive] + states[stateZombie] - lent
	if used != o.used || states[stateSpare] != o.spares || states[stateLive] != o.count || states[stateFree] != len(o.free) || claims != o.claims {
		t.Fatalf("object %q: states %v, but used %d, spares %d, count %d, %d free, claims %d of %d", o.name, states, o.used, o.spares,
			o.count, len(o.free), o.claims, claims)
	}
	if o.used > o.config.Capacity+o.extra || o.lent != lent || o.spares+o.lent > sparesOf(&o.config) || len(o.spareOf) != o.spares || len(o.at) != o.count {
		t.Fatalf("object %q: %d used of %d, %d spares of %d for %d sessions, %d indices", o.name, o.used, o.config.Capacity, o.spares,
			sparesOf(&o.config), len(o.spareOf), len(o.at))
	}
	checkList(t, o)
	free := map[int32]bool{}
	for _, b := range o.free {
		if free[b] || o.entries[b].state != stateFree {
			t.Fatalf("object %q: block %d is on the free list twice or in use", o.name, b)
		}
		free[b] = true
	}
	if o.hasRoom() && o.room.head != nil || o.count > 0 && o.pops.head != nil {
		t.Fatalf("object %q: somebody waits for what is there", o.name)
	}
}

func checkList(t testing.TB, o *object) {
	t.Helper()
	n, before := 0, int32(-1)
	for b := o.first; b >= 0; b = o.entries[b].next {
		e := &o.entries[b]
		if e.prev != before || o.at[e.index] != b || before >= 0 && o.entries[before].index >= e.index {
			t.Fatalf("object %q: the list is out of order at block %d", o.name, b)
		}
		before = b
		n++
	}
	if before != o.last || n != o.count {
		t.Fatalf("object %q: the list has %d entries and ends at %d, want %d and %d", o.name, n, before, o.count, o.last)
	}
}

// block returns the memory of a block in the host's own mapping.
func (s *Store) block(id uint32, track int, block uint32) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[id]
	col := o.columns[track]
	at := col.At + int(block)*col.Stride
	return o.seg.Bytes()[at : at+col.Track.Bytes : at+col.Track.Bytes]
}

// held returns how many claims the session holds.
func (u *Session) held() int {
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	return len(u.claims)
}

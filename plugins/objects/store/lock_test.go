package store

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// readers returns claims of n sessions on one entry.
func readers(t *testing.T, s *Store, id uint32, index uint64, n int) (users []*Session, claims []uint64) {
	t.Helper()
	for range n {
		u := newSession(t, s)
		users = append(users, u)
		claims = append(claims, must(t, u, Op{Kind: OpRead, Object: id, Index: index}).Claim)
	}
	return users, claims
}

func TestLock_IsFair(t *testing.T) {
	s := newStore(t, Limits{})
	id := create(t, s, "x", 2)
	index := write(t, newSession(t, s), id, 1)
	u, c := readers(t, s, id, index, 5)
	must(t, u[0], Op{Kind: OpLock, Claim: c[0]})
	must(t, u[1], Op{Kind: OpLock, Claim: c[1]})
	alone := async(t, u[2], Op{Kind: OpLock, Claim: c[2], Alone: true, Wait: wire.Forever})
	behind := async(t, u[3], Op{Kind: OpLock, Claim: c[3], Wait: wire.Forever})
	refused(t, u[4], Op{Kind: OpLock, Claim: c[4]}, wire.ErrLocked)
	last := async(t, u[4], Op{Kind: OpLock, Claim: c[4], Alone: true, Wait: wire.Forever})
	must(t, u[0], Op{Kind: OpUnlock, Claim: c[0]})
	select {
	case <-alone:
		t.Fatal("an entry is locked alone beside another")
	default:
	}
	must(t, u[1], Op{Kind: OpUnlock, Claim: c[1]})
	for i, over := range []<-chan *Op{alone, behind, last} {
		if op := wait(t, over); op.Err != nil || op.Torn {
			t.Fatalf("lock %d: torn %v, %v", i, op.Torn, op.Err)
		}
		if i < 2 {
			must(t, u[2+i], Op{Kind: OpUnlock, Claim: c[2+i]})
		}
	}
	must(t, u[4], Op{Kind: OpUnlock, Claim: c[4]})
	refused(t, u[4], Op{Kind: OpUnlock, Claim: c[4]}, wire.ErrSpent)
	checkStore(t, s)
}

func TestLock_ThatIsNotWaitedForAnyMoreLetsOthersPass(t *testing.T) {
	s := newStore(t, Limits{})
	id := create(t, s, "x", 2)
	index := write(t, newSession(t, s), id, 1)
	u, c := readers(t, s, id, index, 4)
	must(t, u[0], Op{Kind: OpLock, Claim: c[0]})
	refused(t, u[1], Op{Kind: OpLock, Claim: c[1], Alone: true, Wait: time.Millisecond}, wire.ErrLocked)
	waiting := async(t, u[2], Op{Kind: OpLock, Claim: c[2], Alone: true, Wait: wire.Forever})
	behind := async(t, u[3], Op{Kind: OpLock, Claim: c[3], Wait: wire.Forever})
	must(t, u[2], Op{Kind: OpRelease, Claim: c[2]})
	if op := wait(t, waiting); op.Err == nil {
		t.Error("a claim that was released has its lock")
	}
	if op := wait(t, behind); op.Err != nil {
		t.Errorf("who waited behind it: %v", op.Err)
	}
}

func TestLock_OfADeadWriterIsFreeAndItsEntryTorn(t *testing.T) {
	s := newStore(t, Limits{})
	id := create(t, s, "x", 2)
	index := write(t, newSession(t, s), id, 1)
	u, c := readers(t, s, id, index, 3)
	must(t, u[0], Op{Kind: OpLock, Claim: c[0]})
	if err := u[0].Close(); err != nil { // a reader damages nothing
		t.Fatal(err)
	}
	must(t, u[1], Op{Kind: OpLock, Claim: c[1], Alone: true})
	next := async(t, u[2], Op{Kind: OpLock, Claim: c[2], Alone: true, Wait: wire.Forever})
	if err := u[1].Close(); err != nil {
		t.Fatal(err)
	}
	if op := wait(t, next); op.Err != nil || !op.Torn {
		t.Errorf("the next lock: torn %v, %v, want torn", op.Torn, op.Err)
	}
	reader := newSession(t, s)
	if got := must(t, reader, Op{Kind: OpRead, Object: id, Index: index}); !got.Views[0].Torn {
		t.Error("a reader is not told that the entry is torn")
	}
	must(t, u[2], Op{Kind: OpUnlock, Claim: c[2], Mend: true})
	if got := must(t, reader, Op{Kind: OpRead, Object: id, Index: index}); got.Views[0].Torn {
		t.Error("an entry that was mended is torn")
	}
}

func TestLock_RefusesWhatItCannotLock(t *testing.T) {
	s := newStore(t, Limits{})
	u := newSession(t, s)
	id := create(t, s, "x", 4)
	index := write(t, u, id, 1)
	w := must(t, u, Op{Kind: OpNew, Object: id})
	refused(t, u, Op{Kind: OpLock, Claim: w.Claim}, wire.ErrKind)
	refused(t, u, Op{Kind: OpLock, Claim: 99}, wire.ErrSpent)
	batch := must(t, u, Op{Kind: OpBatch, Object: id, Indices: []uint64{index}})
	refused(t, u, Op{Kind: OpLock, Claim: batch.Claim}, wire.ErrRequest)
	r := must(t, u, Op{Kind: OpRead, Object: id, Index: index})
	must(t, u, Op{Kind: OpLock, Claim: r.Claim})
	refused(t, u, Op{Kind: OpLock, Claim: r.Claim, Wait: wire.Forever}, wire.ErrRequest)
	refused(t, newSession(t, s), Op{Kind: OpUnlock, Claim: r.Claim}, wire.ErrForeign)
}

// TestLock_Model lets sessions lock entries at random, and end at any moment with locks. guards is the model: who is in an entry.
func TestLock_Model(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newStore(t, Limits{})
	id := create(t, s, "x", 4)
	first := newSession(t, s)
	const entries = 3
	for i := range entries {
		write(t, first, id, byte(i))
	}
	var guards [entries]atomic.Int32
	var died, torn atomic.Int32
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			u, err := s.Session("player")
			for range 400 {
				if err != nil {
					t.Error(err)
					return
				}
				i := r.IntN(entries)
				alone := r.IntN(2) == 0
				read := do(u, Op{Kind: OpRead, Object: id, Index: uint64(i)})
				lock := do(u, Op{Kind: OpLock, Claim: read.Claim, Alone: alone, Wait: time.Duration(1+r.IntN(2000)) * time.Microsecond})
				if lock.Err == nil {
					enter(t, &guards[i], alone)
					if lock.Torn {
						torn.Add(1)
					}
					leave(&guards[i], alone)
				}
				switch r.IntN(6) {
				case 0: // it is killed
					if lock.Err == nil && alone {
						died.Add(1)
					}
					_ = u.Close() // a session that has just begun
					u, err = s.Session("player")
				case 1: // it releases the entry as it is
					do(u, Op{Kind: OpRelease, Claim: read.Claim})
				default:
					do(u, Op{Kind: OpUnlock, Claim: read.Claim, Mend: alone && r.IntN(2) == 0})
					do(u, Op{Kind: OpRelease, Claim: read.Claim})
				}
			}
			_ = u.Close() // with nothing held
		})
	}
	all.Wait()
	if died.Load() == 0 || torn.Load() == 0 {
		t.Errorf("%d died alone in an entry and %d found one torn, want some", died.Load(), torn.Load())
	}
	s.mu.Lock()
	left := len(s.objects[id].locks)
	s.mu.Unlock()
	if got := stat(t, s, id); left != 0 || got.Claims != 0 {
		t.Errorf("%d locks and %d claims are left, want none", left, got.Claims)
	}
}

func enter(t *testing.T, guard *atomic.Int32, alone bool) {
	if alone {
		if !guard.CompareAndSwap(0, -1) {
			t.Error("alone in an entry, and not alone")
		}
		return
	}
	if guard.Add(1) <= 0 {
		t.Error("in an entry beside one who has it alone")
	}
}

func leave(guard *atomic.Int32, alone bool) {
	if alone {
		guard.Store(0)
		return
	}
	guard.Add(-1)
}

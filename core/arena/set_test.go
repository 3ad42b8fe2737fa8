package arena

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// named is a schema that says nothing to other processes.
type named string

// Document returns none.
func (named) Document() *native.Schema { return nil }

// add adds an arena of heap memory with one small block.
func add(t testing.TB, s *Set, name string) *Arena {
	t.Helper()
	a, err := s.Add(Config{ID: 99, Name: name, Blocks: 1, BlockBytes: 8, Schema: named(name), Segment: heap})
	ok(t, err)
	return a
}

func TestSet_FindsTheArenaOfAHandle(t *testing.T) {
	s := NewSet()
	first, second := add(t, s, "first"), add(t, s, "second")
	if first.ID() == second.ID() || first.ID() == 0 || second.ID() == 0 {
		t.Fatalf("IDs %d and %d, want two that are not 0", first.ID(), second.ID())
	}
	if first.Name() != "first" || second.Schema() != named("second") {
		t.Errorf("name %q, schema %v", first.Name(), second.Schema())
	}
	for _, a := range []*Arena{first, second} {
		h := commit(t, a)
		if got, err := s.Of(h); got != a || err != nil {
			t.Errorf("Of(%v) = %v, %v, want %q", h, got, err, a.Name())
		}
		lease, err := s.Lease(h)
		ok(t, err)
		ok(t, s.Retain(h))
		ok(t, s.Release(h))
		ok(t, s.Release(h))
		if a.Stats().Live != 1 {
			t.Error("the lease does not keep its block")
		}
		ok(t, lease.Release())
		if err := s.Release(h); !errors.Is(err, ErrStale) {
			t.Errorf("Release too many = %v, want ErrStale", err)
		}
	}
	ok(t, s.Close())
}

func TestSet_UnknownArenaIsForeign(t *testing.T) {
	s := NewSet()
	for _, h := range []hostabi.Handle{0, hostabi.MakeHandle(1, 0, 1), hostabi.MakeHandle(255, 0, 1)} {
		_, ofErr := s.Of(h)
		_, leaseErr := s.Lease(h)
		for _, err := range []error{ofErr, leaseErr, s.Retain(h), s.Release(h)} {
			if !errors.Is(err, ErrForeign) {
				t.Errorf("%v: %v, want ErrForeign", h, err)
			}
		}
	}
	if err := s.Remove(5); !errors.Is(err, ErrForeign) {
		t.Errorf("Remove of nothing = %v, want ErrForeign", err)
	}
}

func TestSet_IDsRunOutAndComeBackWithNewGenerations(t *testing.T) {
	s := NewSet()
	var old hostabi.Handle
	for range hostabi.MaxArena {
		a := add(t, s, "one of many")
		for range 3 {
			old = commit(t, a)
			ok(t, a.Release(old))
		}
	}
	if a, err := s.Add(Config{Name: "too many", Blocks: 1, BlockBytes: 8, Segment: heap}); err == nil {
		t.Fatalf("arena %d was added to a full set", a.ID())
	}
	ok(t, s.Remove(old.Arena()))
	a := add(t, s, "again")
	if a.ID() != old.Arena() {
		t.Fatalf("ID = %d, want %d, the only free one", a.ID(), old.Arena())
	}
	h := commit(t, a)
	if h.Generation() <= old.Generation() {
		t.Errorf("generation %d, want one after %d", h.Generation(), old.Generation())
	}
	for g := range h.Generation() {
		if _, err := s.Lease(hostabi.MakeHandle(a.ID(), 0, g)); !errors.Is(err, ErrStale) {
			t.Errorf("handle of generation %d of the removed arena = %v, want ErrStale", g, err)
		}
	}
	if st := a.Stats(); st.Frees != 0 || st.Commits != 1 {
		t.Errorf("the new arena counts %+v, want its own commit only", st)
	}
	ok(t, a.Release(h))
	ok(t, s.Close())
	if _, err := s.Of(h); !errors.Is(err, ErrForeign) {
		t.Errorf("Of after Close = %v, want ErrForeign", err)
	}
}

func TestSet_RemovedIDIsUsedLast(t *testing.T) {
	s := NewSet()
	first := add(t, s, "first").ID()
	ok(t, s.Remove(first))
	if next := add(t, s, "next").ID(); next == first {
		t.Errorf("ID %d was given again at once", next)
	}
}

func TestSet_FailedAddCostsNoID(t *testing.T) {
	s := NewSet()
	for range 300 {
		if _, err := s.Add(Config{Name: "none"}); err == nil {
			t.Fatal("an arena without blocks was added")
		}
	}
	add(t, s, "one")
}

func TestSet_CloseKeepsArenasInUse(t *testing.T) {
	s := NewSet()
	add(t, s, "idle")
	h, g := commit(t, add(t, s, "busy")), commit(t, add(t, s, "busy too"))
	err := s.Close()
	if !errors.Is(err, ErrOpen) || !strings.Contains(err.Error(), `"busy"`) || !strings.Contains(err.Error(), `"busy too"`) ||
		strings.Contains(err.Error(), "idle") {
		t.Errorf("Close = %v, want ErrOpen for the two busy arenas", err)
	}
	ok(t, s.Release(h))
	ok(t, s.Release(g))
	ok(t, s.Close())
	ok(t, s.Close())
}

func TestSet_ClosedArenaCanBeRemoved(t *testing.T) {
	s := NewSet()
	a := add(t, s, "closed before")
	ok(t, a.Close())
	ok(t, s.Close())
}

func TestSet_LookupWhileArenasComeAndGo(t *testing.T) {
	s := NewSet()
	steady := add(t, s, "steady")
	h := commit(t, steady)
	var lookups sync.WaitGroup
	stop := make(chan struct{})
	for k := range 2 * runtime.GOMAXPROCS(0) {
		lookups.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if lease, err := s.Lease(h); err != nil {
					t.Errorf("Lease = %v", err)
				} else if err := lease.Release(); err != nil {
					t.Errorf("Release = %v", err)
				}
				guess := hostabi.MakeHandle(uint8(i+k), 0, uint64(i%8))
				if lease, err := s.Lease(guess); err == nil {
					if err := lease.Release(); err != nil {
						t.Errorf("Release of the guess %v = %v", guess, err)
					}
				}
			}
		})
	}
	for range 30 {
		a := add(t, s, "passing")
		passing := commit(t, a)
		lease, err := s.Lease(passing)
		ok(t, err)
		ok(t, s.Release(passing))
		ok(t, lease.Release())
		// A lookup that guessed the handle may hold it for a moment.
		for err := s.Remove(a.ID()); err != nil; err = s.Remove(a.ID()) {
			if !errors.Is(err, ErrOpen) {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	close(stop)
	lookups.Wait()
	ok(t, s.Release(h))
	ok(t, s.Close())
}

package arena

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// forgery is a set with one arena that has a block in every state.
type forgery struct {
	set                        *Set
	arena                      *Arena
	free, write, live, revoked hostabi.Handle
}

func newForgery(t testing.TB) *forgery {
	s := NewSet()
	a, err := s.Add(Config{Name: "forged at", Blocks: 4, BlockBytes: 64, Segment: heap})
	ok(t, err)
	f := &forgery{set: s, arena: a}
	for range 3 { // so that older generations exist
		for range 4 {
			ok(t, a.Release(commit(t, a)))
		}
	}
	f.live = commit(t, a)
	f.revoked = commit(t, a)
	ok(t, a.Retain(f.revoked))
	ok(t, a.Revoke(f.revoked))
	l := loan(t, a)
	stamp(l.Bytes(), l.Handle())
	f.write = l.Handle()
	f.free = hostabi.MakeHandle(a.ID(), 3, a.word(3).generation())
	stamp(a.bytes(f.live.Block()), f.live)
	return f
}

// want is the error that a new claim on any handle must get.
func (f *forgery) want(h hostabi.Handle) error {
	switch {
	case h.Arena() != f.arena.ID():
		return ErrForeign
	case int(h.Block()) >= f.arena.Blocks():
		return ErrRange
	case h == f.live:
		return nil
	case h == f.write:
		return ErrState
	}
	return ErrStale
}

func (f *forgery) try(t *testing.T, h hostabi.Handle) {
	before := f.arena.Stats()
	want := f.want(h)
	lease, err := f.set.Lease(h)
	if !errors.Is(err, want) {
		t.Fatalf("Lease(%v) = %v, want %v", h, err, want)
	}
	if want == nil {
		if !stamped(lease.Bytes(), f.live) {
			t.Fatalf("Lease(%v) reads another block", h)
		}
		ok(t, lease.Release())
	} else if lease.Bytes() != nil || lease.Release() == nil {
		t.Fatalf("Lease(%v) gave a claim with its error", h)
	}
	if err := f.set.Retain(h); !errors.Is(err, want) {
		t.Fatalf("Retain(%v) = %v, want %v", h, err, want)
	}
	if want == nil || h == f.revoked {
		if want == nil {
			ok(t, f.set.Release(h))
		}
	} else if err := f.set.Release(h); !errors.Is(err, want) {
		t.Fatalf("Release(%v) = %v, want %v", h, err, want)
	}
	if want != nil {
		if err := f.arena.Revoke(h); !errors.Is(err, want) {
			t.Fatalf("Revoke(%v) = %v, want %v", h, err, want)
		}
	}
	if mem, err := f.arena.Loaned(h); (err == nil) != (h == f.write) || err == nil && !stamped(mem, f.write) {
		t.Fatalf("Loaned(%v) = %d bytes, %v", h, len(mem), err)
	}
	if after := f.arena.Stats(); after != before {
		t.Fatalf("%v moved the arena:\nfrom %+v\n  to %+v", h, before, after)
	}
}

func FuzzHandle(f *testing.F) {
	for _, h := range []hostabi.Handle{0, 1, hostabi.MakeHandle(1, 0, 0), hostabi.MakeHandle(1, 0, 4),
		hostabi.MakeHandle(1, 1, 4), hostabi.MakeHandle(1, 2, 4), hostabi.MakeHandle(1, 3, 4),
		hostabi.MakeHandle(1, 0, 3), hostabi.MakeHandle(1, 0, 5), hostabi.MakeHandle(1, 4, 4),
		hostabi.MakeHandle(1, hostabi.MaxBlock, 4), hostabi.MakeHandle(2, 0, 4), 1<<64 - 1} {
		f.Add(uint64(h))
	}
	f.Fuzz(func(t *testing.T, h uint64) {
		newForgery(t).try(t, hostabi.Handle(h))
	})
}

func TestHandle_NeighboursOfEveryValidOneAreRejected(t *testing.T) {
	f := newForgery(t)
	for _, h := range []hostabi.Handle{f.free, f.write, f.live, f.revoked} {
		f.try(t, h)
		for bit := range 64 {
			f.try(t, h^1<<bit)
		}
	}
}

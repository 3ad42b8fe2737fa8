//go:build invariants

package arena

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// takeLease and others are the functions whose names must be in a leak report.
func takeLease(t *testing.T, a *Arena, h hostabi.Handle) Lease {
	l, err := a.Lease(h)
	ok(t, err)
	return l
}

func takeRetain(t *testing.T, s *Set, h hostabi.Handle) { ok(t, s.Retain(h)) }

func TestInvariants_CloseNamesWhoHoldsWhat(t *testing.T) {
	s := NewSet()
	a, err := s.Add(Config{Name: "leaky", Blocks: 3, BlockBytes: 64, Segment: heap})
	ok(t, err)
	open := loan(t, a)
	h := commit(t, a)
	takeRetain(t, s, h)
	lease := takeLease(t, a, h)
	done := commit(t, a)
	ok(t, a.Release(done))
	report := s.Close()
	if !errors.Is(report, ErrOpen) {
		t.Fatalf("Close = %v, want ErrOpen", report)
	}
	for _, want := range []string{"loan of " + open.Handle().String(), "lease of " + h.String(), "claim of " + h.String(),
		"arena.takeLease", "arena.takeRetain", "arena.loan", "arena.commit", "invariants_on_test.go:"} {
		if !strings.Contains(report.Error(), want) {
			t.Errorf("the report lacks %q:\n%v", want, report)
		}
	}
	if strings.Contains(report.Error(), done.String()) {
		t.Errorf("the report names %v, which was released", done)
	}
	ok(t, open.Abort())
	ok(t, lease.Release())
	ok(t, a.Release(h))
	ok(t, a.Release(h))
	ok(t, s.Close())
}

func TestInvariants_CopiesOfALeaseAreDistinguished(t *testing.T) {
	a := small(t, 1)
	h := commit(t, a)
	mine, theirs := takeLease(t, a, h), takeLease(t, a, h)
	copied := mine
	ok(t, mine.Release())
	if err := copied.Release(); !errors.Is(err, ErrSpent) {
		t.Errorf("Release of a copy = %v, want ErrSpent", err)
	}
	ok(t, a.Release(h))
	if theirs.Bytes() == nil {
		t.Error("somebody else's lease was taken")
	}
	ok(t, theirs.Release())
}

func TestInvariants_LeaseReleasedByHandleIsSpent(t *testing.T) {
	a := small(t, 1)
	h := commit(t, a)
	lease := takeLease(t, a, h)
	ok(t, a.Release(h)) // the claim that the commit left
	ok(t, a.Retain(h))
	ok(t, a.Release(h)) // the retain's
	other := takeLease(t, a, h)
	ok(t, a.Release(h)) // nothing but leases is left: the oldest
	if err := lease.Release(); !errors.Is(err, ErrSpent) {
		t.Errorf("Release of a lease that was released by its handle = %v, want ErrSpent", err)
	}
	ok(t, other.Release())
	if err := a.Release(h); !errors.Is(err, ErrStale) {
		t.Errorf("Release of a free block = %v, want ErrStale", err)
	}
}

func TestInvariants_EveryUnwrittenNumberIsNaN(t *testing.T) {
	poisoned := func(what string, mem []byte) {
		t.Helper()
		for at := 0; at+8 <= len(mem); at += 4 {
			if f := math.Float32frombits(binary.LittleEndian.Uint32(mem[at:])); f == f {
				t.Fatalf("%s: float32 at %d is %v, want NaN", what, at, f)
			}
			if f := math.Float64frombits(binary.LittleEndian.Uint64(mem[at:])); f == f {
				t.Fatalf("%s: float64 at %d is %v, want NaN", what, at, f)
			}
		}
	}
	a := small(t, 1)
	other := attach(a, otherHolder)
	write := func(l Loan) Loan {
		poisoned("a new loan", l.Bytes())
		clear(l.Bytes())
		return l
	}
	ok(t, write(loan(t, a)).Abort())
	h, err := write(loan(t, a)).Commit()
	ok(t, err)
	ok(t, a.Release(h))
	write(loan(t, other))
	_, err = a.Sweep(otherHolder)
	ok(t, err)
	other = attach(a, otherHolder)
	h, err = write(loan(t, a)).Commit()
	ok(t, err)
	ok(t, other.Retain(h))
	ok(t, a.Release(h))
	if mem := a.bytes(0); mem[0] != 0 {
		t.Error("a block that another process reads was poisoned")
	}
	_, err = a.Sweep(otherHolder)
	ok(t, err)
	poisoned("swept", a.bytes(0))
}

package arena

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

func TestOnFree_ReceiverMayTakeTheBlock(t *testing.T) {
	a := small(t, 1)
	turns := 0
	a.OnFree(0, func(block uint32) {
		if turns++; turns == 5 {
			return
		}
		l, err := a.LoanBlock(block)
		if err != nil {
			t.Errorf("LoanBlock in a credit = %v", err)
			return
		}
		h, err := l.Commit()
		ok(t, err)
		ok(t, a.Release(h))
	})
	ok(t, loan(t, a).Abort())
	a.OnFree(0, nil)
	ok(t, loan(t, a).Abort())
	if turns != 5 {
		t.Errorf("%d turns, want 5", turns)
	}
}

func TestClose_WithClaimsOutKeepsThem(t *testing.T) {
	a := small(t, 3)
	l := loan(t, a)
	copy(l.Bytes(), "x")
	h := commit(t, a)
	lease, err := a.Lease(h)
	ok(t, err)
	err = a.Close()
	if !errors.Is(err, ErrOpen) {
		t.Fatalf("Close = %v, want ErrOpen", err)
	}
	if want := "2 blocks (1 loans, 2 leases, 0 holds of other processes)"; !strings.Contains(err.Error(), want) {
		t.Errorf("Close = %v, want %q in it", err, want)
	}
	if _, err := a.Loan(); !errors.Is(err, ErrClosed) {
		t.Errorf("Loan while closing = %v, want ErrClosed", err)
	}
	if _, err := a.LoanBlock(2); !errors.Is(err, ErrClosed) {
		t.Errorf("LoanBlock while closing = %v, want ErrClosed", err)
	}
	second, err := l.Commit()
	ok(t, err)
	ok(t, a.Retain(h))
	for _, h := range []hostabi.Handle{h, h, second} {
		ok(t, a.Release(h))
	}
	if lease.Bytes() == nil {
		t.Error("a lease lost its bytes to Close")
	}
	if err := a.Close(); !errors.Is(err, ErrOpen) {
		t.Errorf("Close with a lease out = %v, want ErrOpen", err)
	}
	ok(t, lease.Release())
	ok(t, a.Close())
	if err := a.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("Close after Close = %v, want ErrClosed", err)
	}
	if _, err := a.Lease(h); !errors.Is(err, ErrStale) {
		t.Errorf("Lease after Close = %v, want ErrStale", err)
	}
	s := a.Stats()
	if s.Free+s.Write+s.Live+s.Zombie != 0 || s.Commits != 2 || s.Frees != 2 {
		t.Errorf("after Close: %+v", s)
	}
}

func TestStats_CountEveryState(t *testing.T) {
	a := small(t, 6)
	other := attach(a, 3)
	loan(t, a)
	loan(t, other)
	h := commit(t, a)
	ok(t, a.Retain(h))
	ok(t, other.Retain(h))
	zombie := commit(t, a)
	ok(t, a.Revoke(zombie))
	ok(t, loan(t, a).Abort())
	ok(t, a.Release(commit(t, a)))
	want := Stats{Free: 2, Write: 2, Live: 1, Zombie: 1, Loans: 1, Leases: 3, Others: 2, Commits: 3, Aborts: 1, Frees: 2}
	if got := a.Stats(); got != want {
		t.Errorf("stats:\n got %+v\nwant %+v", got, want)
	}
	want.Loans, want.Leases, want.Others = 1, 1, 3
	if got := other.Stats(); got != want {
		t.Errorf("stats in the other process:\n got %+v\nwant %+v", got, want)
	}
}

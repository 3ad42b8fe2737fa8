package arena

import (
	"errors"
	"runtime"
	"testing"
)

// closing puts a goroutine's turn between the counter and the word into the hands of the test. The block is also
// held by another process.
func closing(t *testing.T) (*scene, chan error) {
	t.Helper()
	s := stage(t, "live both")
	ok(t, s.host.Retain(s.h)) // the claim that the test's turn gives back
	s.host.local[0].claims.Store(uint64(makeClaims(s.h.Generation(), claimClosing)))
	result := make(chan error)
	go func() {
		_, err := s.host.Lease(s.h)
		result <- err
	}()
	for range 100 {
		runtime.Gosched()
	}
	if c := claims(s.host.local[0].claims.Load()); c != makeClaims(s.h.Generation(), claimClosing) {
		t.Errorf("a lease did not wait: claims %#x", c)
	}
	return s, result
}

func TestLease_WaitsForTheLastReleaseAndComesAfterIt(t *testing.T) {
	s, result := closing(t)
	if s.host.drop(0, 1, s.host.me) {
		t.Fatal("a block that another process holds was freed")
	}
	s.host.local[0].claims.Store(uint64(makeClaims(s.h.Generation(), 0)))
	if err := <-result; err != nil {
		t.Errorf("Lease = %v, want a new claim", err)
	}
	if w := s.host.word(0); w != makeWord(1, stateLive, s.host.me|s.other.me) {
		t.Errorf("word %#x, want the host to hold the block again", w)
	}
	if got := s.host.Stats().Leases; got != 1 {
		t.Errorf("%d claims, want 1", got)
	}
}

func TestLease_WaitsForTheLastReleaseAndIsStale(t *testing.T) {
	s, result := closing(t)
	s.other.drop(0, 1, s.other.me)
	if !s.host.drop(0, 1, s.host.me) {
		t.Fatal("a block that nobody holds was not freed")
	}
	if err := <-result; !errors.Is(err, ErrStale) {
		t.Errorf("Lease = %v, want ErrStale", err)
	}
	if err := s.host.leave(s.h); !errors.Is(err, ErrStale) {
		t.Errorf("release of the generation that is over = %v, want ErrStale", err)
	}
}

func TestLease_RevokedWhileItBeginsLeavesNoTrace(t *testing.T) {
	s := stage(t, "zombie other")
	s.host.local[0].claims.Store(uint64(makeClaims(s.h.Generation(), claimClosing)))
	if err := s.host.enterFirst(s.h); !errors.Is(err, ErrStale) {
		t.Errorf("first claim on a revoked block = %v, want ErrStale", err)
	}
	if err := s.host.Release(s.h); !errors.Is(err, ErrSpent) {
		t.Errorf("Release without a claim = %v, want ErrSpent", err)
	}
}

func TestCommit_OverlappingAbortIsSpent(t *testing.T) {
	s := stage(t, "write host")
	copied := s.loan
	if !s.loan.end(1) { // Commit, between its two steps
		t.Fatal("an open loan cannot be ended")
	}
	if err := copied.Abort(); !errors.Is(err, ErrSpent) {
		t.Errorf("Abort of a loan that is being committed = %v, want ErrSpent", err)
	}
	if w := s.host.word(0); w != s.loan.writing() {
		t.Errorf("word %#x, want it untouched", w)
	}
}

func TestFree_GivesAHint(t *testing.T) {
	for name, free := range map[string]func(*Arena){
		"release": func(a *Arena) { ok(t, a.Release(commit(t, a))) },
		"abort":   func(a *Arena) { ok(t, loan(t, a).Abort()) },
	} {
		a := small(t, 1)
		free(a)
		if _, err := a.loanHinted(0); err != nil {
			t.Errorf("after a %s: %v", name, err)
		}
		if _, err := a.Loan(); !errors.Is(err, ErrExhausted) {
			t.Errorf("Loan of the second of 1 = %v, want ErrExhausted", err)
		}
		if got := a.view.hints[0].Load(); got != 0 {
			t.Errorf("after a look at a taken block the hints are %#x, want none", got)
		}
	}
}

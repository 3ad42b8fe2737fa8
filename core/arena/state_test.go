package arena

import (
	"errors"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

const otherHolder = 3

// scene is an arena of one block in a certain state, seen from the host and from another process.
type scene struct {
	host, other *Arena
	loan        Loan           // zero unless the host writes
	h           hostabi.Handle // of the present generation
	freed       map[string]int // credits by receiver
}

// stage brings the block of a new scene into a state by real operations.
func stage(t *testing.T, state string) *scene {
	t.Helper()
	a := small(t, 1)
	s := &scene{host: a, other: attach(a, otherHolder), h: hostabi.MakeHandle(7, 0, 1), freed: map[string]int{}}
	a.OnFree(0, func(uint32) { s.freed["host"]++ })
	s.other.OnFree(0, func(uint32) { s.freed["other"]++ })
	retainBoth := func() {
		commit(t, a)
		ok(t, s.other.Retain(s.h))
	}
	switch state {
	case "free":
	case "write host":
		s.loan = loan(t, a)
	case "write other":
		loan(t, s.other)
	case "live host":
		commit(t, a)
	case "live both":
		retainBoth()
	case "live other":
		commit(t, s.other)
	case "zombie host":
		commit(t, a)
		ok(t, a.Revoke(s.h))
	case "zombie both":
		retainBoth()
		ok(t, a.Revoke(s.h))
	case "zombie other":
		commit(t, s.other)
		ok(t, a.Revoke(s.h))
	case "closed":
		ok(t, a.Close())
	default:
		t.Fatalf("no state %q", state)
	}
	return s
}

// operations are all that can be asked of a block, by name.
func operations() map[string]func(*scene) error {
	return map[string]func(*scene) error{
		"loan":    func(s *scene) error { _, err := s.host.LoanBlock(0); return err },
		"commit":  func(s *scene) error { _, err := s.loan.Commit(); return err },
		"abort":   func(s *scene) error { return s.loan.Abort() },
		"lease":   func(s *scene) error { _, err := s.host.Lease(s.h); return err },
		"retain":  func(s *scene) error { return s.host.Retain(s.h) },
		"release": func(s *scene) error { return s.host.Release(s.h) },
		"revoke":  func(s *scene) error { return s.host.Revoke(s.h) },
		"sweep":   func(s *scene) error { _, err := s.host.Sweep(otherHolder); return err },
		"close":   func(s *scene) error { return s.host.Close() },
	}
}

func TestBlock_EveryOperationInEveryState(t *testing.T) {
	const host, other, both = word(1), word(1 << otherHolder), word(1 | 1<<otherHolder)
	free := func(g uint64) word { return makeWord(g, stateFree, 0) }
	write := func(by word) word { return makeWord(1, stateWrite, by) }
	live := func(by word) word { return makeWord(1, stateLive, by) }
	zombie := func(by word) word { return makeWord(1, stateZombie, by) }
	closed := makeWord(1, stateClosed, 0)
	cases := []struct {
		from, op string
		err      error
		to       word
	}{
		{"free", "loan", nil, write(host)},
		{"free", "commit", ErrSpent, free(1)},
		{"free", "abort", ErrSpent, free(1)},
		{"free", "lease", ErrStale, free(1)},
		{"free", "retain", ErrStale, free(1)},
		{"free", "release", ErrStale, free(1)},
		{"free", "revoke", ErrStale, free(1)},
		{"free", "sweep", nil, free(1)},
		{"free", "close", nil, closed},

		{"write host", "loan", ErrBusy, write(host)},
		{"write host", "commit", nil, live(host)},
		{"write host", "abort", nil, free(2)},
		{"write host", "lease", ErrState, write(host)},
		{"write host", "retain", ErrState, write(host)},
		{"write host", "release", ErrState, write(host)},
		{"write host", "revoke", ErrState, write(host)},
		{"write host", "sweep", nil, write(host)},
		{"write host", "close", ErrOpen, write(host)},

		{"write other", "loan", ErrBusy, write(other)},
		{"write other", "lease", ErrState, write(other)},
		{"write other", "retain", ErrState, write(other)},
		{"write other", "release", ErrState, write(other)},
		{"write other", "revoke", ErrState, write(other)},
		{"write other", "sweep", nil, free(2)},
		{"write other", "close", ErrOpen, write(other)},

		{"live host", "loan", ErrBusy, live(host)},
		{"live host", "lease", nil, live(host)},
		{"live host", "retain", nil, live(host)},
		{"live host", "release", nil, free(2)},
		{"live host", "revoke", nil, zombie(host)},
		{"live host", "sweep", nil, live(host)},
		{"live host", "close", ErrOpen, live(host)},

		{"live both", "loan", ErrBusy, live(both)},
		{"live both", "lease", nil, live(both)},
		{"live both", "retain", nil, live(both)},
		{"live both", "release", nil, live(other)},
		{"live both", "revoke", nil, zombie(both)},
		{"live both", "sweep", nil, live(host)},
		{"live both", "close", ErrOpen, live(both)},

		{"live other", "loan", ErrBusy, live(other)},
		{"live other", "lease", nil, live(both)},
		{"live other", "retain", nil, live(both)},
		{"live other", "release", ErrSpent, live(other)},
		{"live other", "revoke", nil, zombie(other)},
		{"live other", "sweep", nil, free(2)},
		{"live other", "close", ErrOpen, live(other)},

		{"zombie host", "loan", ErrBusy, zombie(host)},
		{"zombie host", "lease", ErrStale, zombie(host)},
		{"zombie host", "retain", ErrStale, zombie(host)},
		{"zombie host", "release", nil, free(2)},
		{"zombie host", "revoke", ErrStale, zombie(host)},
		{"zombie host", "sweep", nil, zombie(host)},
		{"zombie host", "close", ErrOpen, zombie(host)},

		{"zombie both", "loan", ErrBusy, zombie(both)},
		{"zombie both", "lease", ErrStale, zombie(both)},
		{"zombie both", "retain", ErrStale, zombie(both)},
		{"zombie both", "release", nil, zombie(other)},
		{"zombie both", "revoke", ErrStale, zombie(both)},
		{"zombie both", "sweep", nil, zombie(host)},
		{"zombie both", "close", ErrOpen, zombie(both)},

		{"zombie other", "loan", ErrBusy, zombie(other)},
		{"zombie other", "lease", ErrStale, zombie(other)},
		{"zombie other", "retain", ErrStale, zombie(other)},
		{"zombie other", "release", ErrSpent, zombie(other)},
		{"zombie other", "revoke", ErrStale, zombie(other)},
		{"zombie other", "sweep", nil, free(2)},
		{"zombie other", "close", ErrOpen, zombie(other)},

		{"closed", "loan", ErrClosed, closed},
		{"closed", "lease", ErrStale, closed},
		{"closed", "retain", ErrStale, closed},
		{"closed", "release", ErrStale, closed},
		{"closed", "revoke", ErrStale, closed},
		{"closed", "sweep", nil, closed},
		{"closed", "close", ErrClosed, closed},
	}
	for _, c := range cases {
		s := stage(t, c.from)
		if err := operations()[c.op](s); !errors.Is(err, c.err) {
			t.Errorf("%s, %s: %v, want %v", c.from, c.op, err, c.err)
		}
		if got := s.host.word(0); got != c.to {
			t.Errorf("%s, %s: word %v, want %v", c.from, c.op, got, c.to)
		}
		want := 0
		if c.to == free(2) {
			want = 1
		}
		if s.freed["host"] != want || s.freed["other"] != 0 {
			t.Errorf("%s, %s: credits %v, want %d for the host", c.from, c.op, s.freed, want)
		}
	}
}

func TestBlock_HandlesOfOtherGenerationsChangeNothing(t *testing.T) {
	for _, from := range []string{"free", "write host", "write other", "live host", "live both", "live other",
		"zombie host", "zombie both", "zombie other", "closed"} {
		for _, generation := range []uint64{0, 2, hostabi.MaxGeneration} {
			for _, op := range []string{"lease", "retain", "release", "revoke"} {
				s := stage(t, from)
				before := s.host.word(0)
				s.h = hostabi.MakeHandle(7, 0, generation)
				if err := operations()[op](s); !errors.Is(err, ErrStale) {
					t.Errorf("%s, %s of generation %d: %v, want ErrStale", from, op, generation, err)
				}
				if got := s.host.word(0); got != before {
					t.Errorf("%s, %s of generation %d: word %v, want %v", from, op, generation, got, before)
				}
			}
		}
	}
}

func TestSweep_ReportsADeadProcessesClaims(t *testing.T) {
	a := small(t, 8)
	dead := attach(a, otherHolder)
	alive := attach(a, otherHolder+1)
	loan(t, dead)
	loan(t, dead)
	shared := commit(t, dead)
	ok(t, alive.Retain(shared))
	commit(t, dead)
	zombie := commit(t, dead)
	ok(t, dead.Revoke(zombie))
	mine := commit(t, a)
	for i := range a.view.hints {
		a.view.hints[i].Store(0) // it had no time to give them
	}
	got, err := a.Sweep(otherHolder)
	ok(t, err)
	if want := (Swept{Write: 2, Live: 2, Zombie: 1, Freed: 4}); got != want {
		t.Errorf("Sweep = %+v, want %+v", got, want)
	}
	if got, err := a.Sweep(otherHolder); err != nil || got != (Swept{}) {
		t.Errorf("second Sweep = %+v, %v, want nothing", got, err)
	}
	for range 6 {
		if _, err := a.loanHinted(0); err != nil {
			t.Errorf("a free block has no hint: %v", err)
		}
	}
	ok(t, alive.Release(shared))
	ok(t, a.Release(mine))
	for _, holder := range []int{hostabi.ArenaHost, -1, hostabi.ArenaHolderBits, 99} {
		if _, err := a.Sweep(holder); err == nil {
			t.Errorf("Sweep(%d) succeeded", holder)
		}
	}
}

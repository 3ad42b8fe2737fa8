package arena

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// scribbler writes words that no arena writes, as a process with the words mapped may.
type scribbler struct {
	a      *Arena
	random *rand.Rand
}

// scribble spoils one thing.
func (s *scribbler) scribble() {
	v := s.a.view
	block := s.random.IntN(len(v.blocks))
	switch s.random.IntN(12) {
	case 0:
		v.blocks[block].aborts.Store(s.random.Uint64())
	case 1:
		v.blocks[block].creditor.Store(s.random.Uint32N(64))
	case 2:
		v.hints[s.random.IntN(len(v.hints))].Store(s.random.Uint64())
	case 3:
		v.header.cursor.Store(s.random.Uint32())
	case 4:
		v.blocks[block].word.Store(s.random.Uint64())
	default:
		v.blocks[block].word.Store(uint64(s.near(word(v.blocks[block].word.Load()))))
	}
}

// near returns a word that differs from w in little, which is the harder thing to see.
func (s *scribbler) near(w word) word {
	g, st, holders := w.generation(), w.state(), w.holders()
	for range 1 + s.random.IntN(2) {
		switch s.random.IntN(4) {
		case 0:
			st = state(s.random.IntN(8))
		case 1:
			holders ^= 1 << s.random.IntN(hostabi.ArenaHolderBits)
		case 2:
			holders = 0
		case 3:
			g = generationAfter(max(g, 1), uint64(s.random.IntN(7))+hostabi.MaxGeneration-3) & hostabi.MaxGeneration
		}
	}
	return makeWord(g, st, holders)
}

// endure is a host that works while words are scribbled on. Nothing that it does may panic or hang, and its own claims and loans stay valid.
type endure struct {
	t      testing.TB
	a      *Arena
	random *rand.Rand
	loans  []Loan
	leases []Lease
	held   []hostabi.Handle // claims without a lease
	over   []hostabi.Handle // handles whose last claim was given back
	counts map[hostabi.Handle]int

	unstamped bool // another process writes into the blocks themselves
}

// intact reports whether a block has the bytes that the host wrote, and at least some.
func (e *endure) intact(mem []byte, h hostabi.Handle) bool {
	return len(mem) > 0 && (e.unstamped || stamped(mem, h))
}

func newEndure(t testing.TB, a *Arena, seed uint64) *endure {
	return &endure{t: t, a: a, random: rand.New(rand.NewPCG(seed, 1)), counts: map[hostabi.Handle]int{}}
}

// remove takes a random element out of a slice.
func remove[T any](e *endure, from *[]T) (T, bool) {
	var none T
	if len(*from) == 0 {
		return none, false
	}
	i := e.random.IntN(len(*from))
	x := (*from)[i]
	(*from)[i] = (*from)[len(*from)-1]
	*from = (*from)[:len(*from)-1]
	return x, true
}

func (e *endure) claimed(h hostabi.Handle) { e.counts[h]++ }

func (e *endure) unclaimed(h hostabi.Handle) {
	if e.counts[h]--; e.counts[h] == 0 {
		e.over = append(e.over, h)
	}
}

func (e *endure) must(what string, err error) {
	if err != nil {
		e.t.Errorf("%s = %v", what, err)
	}
}

// step does one thing that a host does.
func (e *endure) step() {
	switch e.random.IntN(9) {
	case 0, 1:
		e.loan()
	case 2, 3:
		if l, some := remove(e, &e.loans); some {
			if !e.intact(l.Bytes(), l.Handle()) {
				e.t.Errorf("the loan of %v lost its bytes", l.Handle())
			}
			h, err := l.Commit()
			e.must("Commit of an open loan", err)
			e.held = append(e.held, h)
			e.claimed(h)
		}
	case 4:
		if l, some := remove(e, &e.loans); some {
			e.must("Abort of an open loan", l.Abort())
			e.over = append(e.over, l.Handle())
		}
	case 5:
		e.lease()
	case 6:
		if l, some := remove(e, &e.leases); some {
			if !e.intact(l.Bytes(), l.Handle()) {
				e.t.Errorf("the lease of %v lost its bytes", l.Handle())
			}
			e.must("Release of a lease", l.Release())
			e.unclaimed(l.Handle())
		}
	case 7:
		if h, some := remove(e, &e.held); some {
			e.must("Release of a claim", e.a.Release(h))
			e.unclaimed(h)
		}
	case 8:
		e.nonsense()
	}
}

func (e *endure) loan() {
	if len(e.loans) > e.a.Blocks()/4 {
		return
	}
	l, err := e.a.Loan()
	if e.random.IntN(2) == 0 && err != nil {
		l, err = e.a.LoanBlock(e.random.Uint32N(uint32(e.a.Blocks())))
	}
	if err != nil {
		return // the scribbler has taken all
	}
	if e.counts[l.Handle()] != 0 {
		e.t.Errorf("block %v was lent while it is held", l.Handle())
	}
	stamp(l.Bytes(), l.Handle())
	e.loans = append(e.loans, l)
}

// lease claims blocks that the host holds already, which no scribbling can prevent.
func (e *endure) lease() {
	if len(e.held) == 0 {
		return
	}
	h := e.held[e.random.IntN(len(e.held))]
	l, err := e.a.Lease(h)
	if errors.Is(err, ErrStale) && e.a.word(h.Block()).is(h.Generation(), stateZombie) ||
		errors.Is(err, ErrState) && e.a.word(h.Block()).is(h.Generation(), stateWrite) {
		return // it looks revoked, or on loan
	}
	if err != nil {
		return // it looked so a moment ago
	}
	e.leases = append(e.leases, l)
	e.claimed(h)
}

// nonsense uses handles that a message of the scribbler may name.
func (e *endure) nonsense() {
	h := hostabi.MakeHandle(e.a.ID(), e.random.Uint32N(uint32(e.a.Blocks())), e.random.Uint64N(12))
	if e.random.IntN(2) == 0 {
		h = hostabi.MakeHandle(e.a.ID(), h.Block(), e.a.word(h.Block()).generation())
	}
	e.a.Stats()
	_ = e.a.Credit(h)
	_, _ = e.a.Loaned(h)
	if e.counts[h] > 0 {
		return // it would be the end of a claim that is not nonsense
	}
	for _, l := range e.loans {
		if l.Handle() == h {
			return
		}
	}
	if l, err := e.a.Lease(h); err == nil {
		e.must("Release of a lease that was given", l.Release())
	}
	_ = e.a.Revoke(h)
}

// whole checks an arena after the sweep of the only other process: the host's claims are valid, all other blocks are free and new.
func (e *endure) whole() {
	e.t.Helper()
	for _, h := range e.held {
		l, err := e.a.Lease(h)
		if err != nil {
			if !e.a.word(h.Block()).is(h.Generation(), stateZombie) {
				e.t.Fatalf("Lease of %v, which the host holds = %v", h, err)
			}
			continue // revoked, or made to look so
		}
		if !e.intact(l.Bytes(), h) {
			e.t.Fatalf("block %v is not what the host wrote", h)
		}
		e.must("Release", l.Release())
	}
	for _, l := range e.loans {
		if w := e.a.word(l.Block()); w != l.writing() || !e.intact(l.Bytes(), l.Handle()) {
			e.t.Fatalf("the loan of %v has word %#x after the sweep", l.Handle(), w)
		}
	}
	e.stale()
	s := e.a.Stats()
	if busy := len(e.loans) + e.blocksHeld(); s.Free != e.a.Blocks()-busy || s.Others != 0 {
		e.t.Fatalf("after the sweep %+v, want %d blocks free", s, e.a.Blocks()-busy)
	}
	e.giveBack()
	e.stale()
	var all []Loan
	for range e.a.Blocks() {
		l, err := e.a.Loan()
		if err != nil {
			e.t.Fatalf("loan %d of %d = %v", len(all)+1, e.a.Blocks(), err)
		}
		if e.counts[l.Handle()] != 0 {
			e.t.Fatalf("generation of %v was used before", l.Handle())
		}
		all = append(all, l)
	}
	for _, l := range all {
		ok(e.t, l.Abort())
	}
}

func (e *endure) blocksHeld() int {
	blocks := map[uint32]bool{}
	for h, n := range e.counts {
		if n > 0 {
			blocks[h.Block()] = true
		}
	}
	return len(blocks)
}

func (e *endure) stale() {
	e.t.Helper()
	for _, h := range e.over {
		if _, err := e.a.Lease(h); !errors.Is(err, ErrStale) {
			e.t.Fatalf("Lease of %v, which is over = %v, want ErrStale", h, err)
		}
	}
}

func (e *endure) giveBack() {
	for len(e.loans) > 0 {
		l, _ := remove(e, &e.loans)
		ok(e.t, l.Abort())
		e.over = append(e.over, l.Handle())
	}
	for len(e.leases) > 0 {
		l, _ := remove(e, &e.leases)
		ok(e.t, l.Release())
		e.unclaimed(l.Handle())
	}
	for len(e.held) > 0 {
		h, _ := remove(e, &e.held)
		ok(e.t, e.a.Release(h))
		e.unclaimed(h)
	}
}

package arena

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// hammer is many goroutines of two processes on few blocks.
type hammer struct {
	t       *testing.T
	process [2]*Arena
	full    chan hostabi.Handle // each with one claim of process 0
	recent  [64]atomic.Uint64   // handles that were valid at some time
	rounds  int
	credits atomic.Uint64
}

func (h *hammer) check(what string, err error, allowed ...error) bool {
	if err == nil {
		return true
	}
	for _, a := range allowed {
		if errors.Is(err, a) {
			return false
		}
	}
	h.t.Errorf("%s = %v", what, err)
	return false
}

func (h *hammer) produce(by int) {
	a := h.process[0]
	for i := range h.rounds {
		l, err := a.Loan()
		for errors.Is(err, ErrExhausted) {
			runtime.Gosched()
			l, err = a.Loan()
		}
		if !h.check("Loan", err) {
			return
		}
		stamp(l.Bytes(), l.Handle())
		if i%7 == 3 {
			h.check("Abort", l.Abort())
			continue
		}
		handle, err := l.Commit()
		h.check("Commit", err)
		h.recent[(by*31+i)%len(h.recent)].Store(uint64(handle))
		h.full <- handle
	}
}

func (h *hammer) consume() {
	a := h.process[0]
	for handle := range h.full {
		lease, err := a.Lease(handle)
		if !h.check("Lease", err, ErrStale) { // a thief may have revoked it
			h.check("Release", a.Release(handle))
			continue
		}
		h.check("Release", a.Release(handle))
		if !stamped(lease.Bytes(), handle) {
			h.t.Errorf("lease of %v reads another block", handle)
		}
		h.check("Lease.Release", lease.Release())
	}
}

// steal claims handles that may be stale from either process, and now and then revokes one.
func (h *hammer) steal(by int) {
	a := h.process[by%2]
	for i := range 2 * h.rounds {
		handle := hostabi.Handle(h.recent[(by*17+i)%len(h.recent)].Load())
		if handle == 0 {
			runtime.Gosched()
			continue
		}
		lease, err := a.Lease(handle)
		if !h.check("stolen Lease", err, ErrStale, ErrState) {
			continue
		}
		if !stamped(lease.Bytes(), handle) {
			h.t.Errorf("stolen lease of %v reads another block", handle)
		}
		if i%16 == 5 {
			h.check("Revoke", a.Revoke(handle), ErrStale)
		}
		if i%4 == 1 {
			runtime.Gosched()
		}
		if h.check("stolen Retain", a.Retain(handle), ErrStale) {
			h.check("stolen Release", a.Release(handle))
		}
		if !stamped(lease.Bytes(), handle) {
			h.t.Errorf("stolen lease of %v lost its block", handle)
		}
		h.check("stolen Lease.Release", lease.Release())
	}
}

func TestArena_ManyGoroutinesOfTwoProcesses(t *testing.T) {
	a := small(t, 6)
	h := &hammer{t: t, process: [2]*Arena{a, attach(a, otherHolder)}, full: make(chan hostabi.Handle, 4), rounds: 15000}
	if testing.Short() {
		h.rounds = 1500
	}
	for b := range uint32(a.Blocks()) {
		for _, p := range h.process {
			p.OnFree(b, func(uint32) { h.credits.Add(1) })
		}
	}
	actors := 2 * runtime.GOMAXPROCS(0)
	var producers, others sync.WaitGroup
	for k := range actors {
		producers.Go(func() { h.produce(k) })
		others.Go(h.consume)
		others.Go(func() { h.steal(k) })
	}
	producers.Wait()
	close(h.full)
	others.Wait()
	s := a.Stats()
	total := uint64(actors * h.rounds)
	if s.Free != a.Blocks() || s.Leases != 0 || s.Commits+s.Aborts != total || s.Frees != total {
		t.Errorf("after %d loans: %+v", total, s)
	}
	// A free that the next one of the same block overtakes gives no credit, but the last one does.
	if got := h.credits.Load(); got > total || got < total/2 {
		t.Errorf("%d credits for %d frees", got, total)
	}
	for b := range uint32(a.Blocks()) {
		last := a.word(b).generation()
		if h.process[0].local[b].credited.Load() != last && h.process[1].local[b].credited.Load() != last {
			t.Errorf("the last free of block %d gave no credit", b)
		}
	}
	ok(t, a.Close())
}

func TestLoan_IsNeverRefusedWhileABlockIsFree(t *testing.T) {
	// Two blocks at the ends of a long arena, of which another goroutine holds at most one at a time: a search can
	// meet each of them taken, but one is always free.
	const blocks = 2000
	a := small(t, blocks)
	for b := range uint32(blocks - 2) {
		_, err := a.LoanBlock(b + 1)
		ok(t, err)
	}
	stop := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		for i := uint32(0); ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if l, err := a.LoanBlock(i % 2 * (blocks - 1)); err == nil {
				if err := l.Abort(); err != nil {
					t.Errorf("Abort = %v", err)
				}
			}
		}
	})
	for range 20_000 {
		l, err := a.Loan()
		if err != nil {
			t.Errorf("Loan = %v", err)
			break
		}
		ok(t, l.Abort())
	}
	close(stop)
	other.Wait()
}

func TestLoan_ContendedEndHasOneWinner(t *testing.T) {
	a := small(t, 1)
	for range 500 {
		l := loan(t, a)
		var won atomic.Int32
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if h, err := l.Commit(); err == nil {
					won.Add(1)
					if err := a.Release(h); err != nil {
						t.Errorf("Release = %v", err)
					}
				}
			})
			wg.Go(func() {
				if l.Abort() == nil {
					won.Add(1)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 4 ended the loan", won.Load())
		}
	}
	if s := a.Stats(); s.Free != 1 || s.Frees != 500 {
		t.Errorf("after 500 loans: %+v", s)
	}
}

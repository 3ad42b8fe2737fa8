package arena

import (
	"runtime"

	"github.com/rlhost/rlhost/hostabi"
)

// Retain adds a claim on the block: it stays as it is until a Release of the same handle. Whoever passes a handle
// on retains it first. Errors: ErrForeign, ErrRange, ErrState before its commit, ErrStale.
func (a *Arena) Retain(h hostabi.Handle) error {
	if err := a.enter(h); err != nil {
		return err
	}
	a.track.retained(h)
	return nil
}

// Release gives one claim back, be it from Commit, Retain or Lease; the last claim frees the block. A handle
// carries no name of its owner, so a Release too many takes somebody else's claim, unless there is none: then it
// returns ErrStale, or ErrSpent if only other processes hold the block. Errors besides: ErrForeign, ErrRange,
// ErrState.
func (a *Arena) Release(h hostabi.Handle) error {
	if err := a.check(h); err != nil {
		return err
	}
	if !a.track.endClaim(h) {
		return a.refusal(h)
	}
	return a.leave(h)
}

// Revoke makes the block unreachable for new leases, LIVE → ZOMBIE; those who hold it keep it, and the last of
// them frees it. Errors: ErrForeign, ErrRange, ErrState, ErrStale.
func (a *Arena) Revoke(h hostabi.Handle) error {
	if err := a.check(h); err != nil {
		return err
	}
	for {
		w := a.word(h.Block())
		if err := readable(w, h); err != nil {
			return err
		}
		if a.swap(h.Block(), w, makeWord(w.generation(), stateZombie, w.holders())) {
			return nil
		}
	}
}

// readable tells whether a new claim on h may begin while the block's word is w.
func readable(w word, h hostabi.Handle) error {
	if w.is(h.Generation(), stateLive) {
		return nil
	}
	if w.is(h.Generation(), stateWrite) {
		return ErrState
	}
	return ErrStale
}

// refusal says why a claim on h that is not there cannot be released.
func (a *Arena) refusal(h hostabi.Handle) error {
	w := a.word(h.Block())
	if w.is(h.Generation(), stateLive) || w.is(h.Generation(), stateZombie) {
		return ErrSpent
	}
	return readable(w, h)
}

// enter adds a claim of this process. The counter is read before the word: a counter of a newer generation than
// the handle's is then impossible, and one of an older generation means no claims. While the counter is not zero
// this process's bit pins the block, so counting up is enough.
func (a *Arena) enter(h hostabi.Handle) error {
	if err := a.check(h); err != nil {
		return err
	}
	counter := &a.local[h.Block()].claims
	for {
		c := claims(counter.Load())
		if err := readable(a.word(h.Block()), h); err != nil {
			return err
		}
		switch {
		case c.generation() != h.Generation() || !c.closing() && c.count() == 0:
			if counter.CompareAndSwap(uint64(c), uint64(makeClaims(h.Generation(), claimClosing))) {
				return a.enterFirst(h)
			}
		case c.closing():
			runtime.Gosched() // another goroutine is a few instructions from the end of its turn
		case c.count() == claimMax:
			return ErrClaims
		case counter.CompareAndSwap(uint64(c), uint64(c+1)):
			return nil
		}
	}
}

// enterFirst sets this process's bit on a block that others hold. The caller has set closing.
func (a *Arena) enterFirst(h hostabi.Handle) error {
	counter := &a.local[h.Block()].claims
	for {
		w := a.word(h.Block())
		if err := readable(w, h); err != nil {
			// Nothing pins the block, so a commit of a later generation may have overwritten the counter.
			counter.CompareAndSwap(uint64(makeClaims(h.Generation(), claimClosing)), uint64(makeClaims(h.Generation(), 0)))
			return err
		}
		if a.swap(h.Block(), w, w|a.me) {
			counter.Store(uint64(makeClaims(h.Generation(), 1)))
			return nil
		}
	}
}

// leave gives back a claim of this process.
func (a *Arena) leave(h hostabi.Handle) error {
	counter := &a.local[h.Block()].claims
	for {
		c := claims(counter.Load())
		switch {
		case c.generation() != h.Generation() || !c.closing() && c.count() == 0:
			return a.refusal(h)
		case c.closing():
			if a.word(h.Block()).generation() != h.Generation() {
				return ErrStale
			}
			runtime.Gosched()
		case c.count() > 1:
			if counter.CompareAndSwap(uint64(c), uint64(c-1)) {
				return nil
			}
		case counter.CompareAndSwap(uint64(c), uint64(makeClaims(h.Generation(), claimClosing))):
			if !a.drop(h.Block(), a.me) {
				counter.Store(uint64(makeClaims(h.Generation(), 0)))
			}
			return nil // of a freed block the counter stays closing: its generation is over
		}
	}
}

// claimFirst counts the claim that a commit leaves to the writer, before anybody can see the block. It fails if
// the loan has ended. As in enter the counter is read before the word, so that it is never that of a later use.
func (a *Arena) claimFirst(l Loan) bool {
	counter := &a.local[l.Block()].claims
	for {
		c := claims(counter.Load())
		if a.word(l.Block()) != l.writing() || c.generation() == l.h.Generation() {
			return false
		}
		if counter.CompareAndSwap(uint64(c), uint64(makeClaims(l.h.Generation(), 1))) {
			return true
		}
	}
}

// unclaimFirst takes claimFirst back.
func (a *Arena) unclaimFirst(h hostabi.Handle) {
	a.local[h.Block()].claims.CompareAndSwap(uint64(makeClaims(h.Generation(), 1)), uint64(makeClaims(h.Generation(), 0)))
}

// drop clears a process's bit in the word of a block that the bit pins; without holders the block becomes free.
// It returns false if the bit was not set or others still hold the block.
func (a *Arena) drop(block uint32, bit word) (freed bool) {
	for {
		w := a.word(block)
		if w&bit == 0 {
			return false
		}
		next := w &^ bit
		if next.holders() == 0 {
			if invariants && !a.prepareFree(block, w) {
				continue
			}
			next = w.freed()
		}
		if !a.swap(block, w, next) {
			continue
		}
		if next.holders() != 0 {
			return false
		}
		if w.state() == stateWrite {
			a.view.blocks[block].aborts.Add(1)
		}
		a.announce(block)
		return true
	}
}

// prepareFree poisons a block that its last holder is about to free. A live block is revoked first, so that no
// other process can lease it meanwhile; then the caller has to look again.
func (a *Arena) prepareFree(block uint32, w word) bool {
	if w.state() == stateLive {
		a.swap(block, w, makeWord(w.generation(), stateZombie, w.holders()))
		return false
	}
	poison(a.bytes(block))
	return true
}

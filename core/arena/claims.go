package arena

import (
	"runtime"

	"github.com/rlhost/rlhost/hostabi"
)

// maxTries bounds every loop over a word. A compare-and-swap fails only because another process succeeded with its
// own, so no well-behaved process comes near the limit. A process that writes without end must not block the others.
const maxTries = 1 << 16

// Retain adds a claim on the block: it stays as it is until a Release of the same handle. A sender that passes a
// handle on must retain it first. Errors: ErrForeign, ErrRange, ErrState before its commit, ErrStale.
func (a *Arena) Retain(h hostabi.Handle) error {
	if err := a.enter(h); err != nil {
		return err
	}
	a.track.retained(h)
	return nil
}

// Release ends one claim, from Commit, Retain or Lease; the last claim frees the block. A handle does not name its
// owner, so a Release too many ends another owner's claim; if there is none, it returns ErrStale, or ErrSpent if
// only other processes hold the block. Other errors: ErrForeign, ErrRange, ErrState.
func (a *Arena) Release(h hostabi.Handle) error {
	if err := a.check(h); err != nil {
		return err
	}
	if !a.track.endClaim(h) {
		return a.refusal(h)
	}
	return a.leave(h)
}

// Revoke makes the block unreachable for new leases, LIVE → ZOMBIE; its holders keep it, and the last of them
// frees it. Errors: ErrForeign, ErrRange, ErrState, ErrStale, ErrDamaged.
func (a *Arena) Revoke(h hostabi.Handle) error {
	if err := a.check(h); err != nil {
		return err
	}
	for range maxTries {
		w := a.word(h.Block())
		if err := readable(w, h); err != nil {
			return err
		}
		if a.swap(h.Block(), w, makeWord(w.generation(), stateZombie, w.holders())) {
			return nil
		}
	}
	return ErrDamaged
}

// readable reports whether a new claim on h may begin while the block's word is w.
func readable(w word, h hostabi.Handle) error {
	if w.is(h.Generation(), stateLive) {
		return nil
	}
	if w.is(h.Generation(), stateWrite) {
		return ErrState
	}
	return ErrStale
}

// refusal returns why a claim on h cannot be released.
func (b *blocks) refusal(h hostabi.Handle) error {
	w := b.word(h.Block())
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
		if err := readable(a.word(h.Block()), h); err != nil && !a.pinned(h, c) {
			return err
		}
		switch {
		case c.generation() != h.Generation() || c.none():
			if c.holds() || !c.precedes(h.Generation()) {
				if claims(counter.Load()) == c {
					return ErrStale // the word is wrong
				}
				continue
			}
			if counter.CompareAndSwap(uint64(c), uint64(makeClaims(h.Generation(), claimClosing))) {
				return a.enterFirst(h)
			}
		case c.closing():
			runtime.Gosched() // another goroutine is a few instructions from the end of its turn
		case c.loan():
			return ErrState
		case c.count() == claimMax:
			return ErrClaims
		case counter.CompareAndSwap(uint64(c), uint64(c+1)):
			return nil
		}
	}
}

// pinned reports whether this process has claims on h although the block's word, read after c, says that there
// can be no new ones: then the word is wrong, unless the block was revoked or its commit is not through.
func (b *blocks) pinned(h hostabi.Handle, c claims) bool {
	if c.generation() != h.Generation() || c.count() == 0 || c.closing() {
		return false
	}
	w := b.word(h.Block())
	return !w.is(h.Generation(), stateZombie) && !w.is(h.Generation(), stateWrite) && b.claims(h.Block()) == c
}

// enterFirst sets this process's bit on a block that others hold. The caller has set closing.
func (a *Arena) enterFirst(h hostabi.Handle) error {
	counter := &a.local[h.Block()].claims
	closing, err := uint64(makeClaims(h.Generation(), claimClosing)), ErrDamaged
	for range maxTries {
		w := a.word(h.Block())
		if err = readable(w, h); err != nil {
			break
		}
		if a.swap(h.Block(), w, w|a.me) {
			if counter.CompareAndSwap(closing, uint64(makeClaims(h.Generation(), 1))) {
				return nil
			}
			return ErrStale // the block is on another use here: the word was wrong
		}
		err = ErrDamaged
	}
	// Nothing pins the block, so a loan of a later generation may have overwritten the counter.
	counter.CompareAndSwap(closing, uint64(makeClaims(h.Generation(), 0)))
	return err
}

// leave gives back a claim of this process.
func (a *Arena) leave(h hostabi.Handle) error {
	counter := &a.local[h.Block()].claims
	for {
		c := claims(counter.Load())
		switch {
		case c.generation() != h.Generation() || c.none() || c.loan():
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
			freed, left := a.drop(h.Block(), h.Generation(), a.me), claims(0)
			if freed {
				left = claimOver
			}
			// A freed block may be on its next loan already, as the counter then says.
			counter.CompareAndSwap(uint64(makeClaims(h.Generation(), claimClosing)), uint64(makeClaims(h.Generation(), left)))
			if freed {
				a.announce(h.Block(), nextGeneration(h.Generation()))
			}
			return nil
		}
	}
}

// drop clears a process's bit in the word of a committed block that the bit pins; without holders the block
// becomes free. It returns false if others still hold the block, or if the word is not that of the generation.
func (a *Arena) drop(block uint32, generation uint64, bit word) (freed bool) {
	poisoned := false
	for range maxTries {
		w := a.word(block)
		if !w.held(generation, bit) {
			return false
		}
		next := w &^ bit
		if next.holders() == 0 {
			if invariants && a.writable() && !poisoned {
				poisoned = a.prepareFree(block, w)
				continue
			}
			next = w.freed()
		}
		if a.swap(block, w, next) {
			return next.holders() == 0
		}
	}
	return false
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

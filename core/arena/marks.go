package arena

import "github.com/rlhost/rlhost/hostabi"

// MarkWords is how many words of marks each use of a block has.
const MarkWords = len(hostabi.ArenaBlock{}.Marks)

// markShift is where the generation of marks begins in their word.
const markShift = 32

// Mark sets bits in one of the words of marks that a use of a block has. Their meaning is up to the callers. They can be read after
// the block has become free, until a later use sets its marks. The caller must have a claim on the block. Any goroutine may call it,
// and any process that has the arena. Errors: ErrForeign, ErrRange, and ErrDamaged while another process writes marks without end.
func (a *Arena) Mark(h hostabi.Handle, word int, bits uint32) error { return a.mark(h, word, bits, 0) }

// Unmark clears bits that Mark has set, under the same conditions.
func (a *Arena) Unmark(h hostabi.Handle, word int, bits uint32) error {
	return a.mark(h, word, 0, bits)
}

func (a *Arena) mark(h hostabi.Handle, word int, set, clear uint32) error {
	if err := a.check(h); err != nil {
		return err
	}
	marks, of := &a.view.blocks[h.Block()].marks[word], uint32(h.Generation())
	for range maxTries {
		was := marks.Load()
		next := uint64(of)<<markShift | uint64(set)
		if uint32(was>>markShift) == of {
			next |= was &^ uint64(clear)
		}
		if marks.CompareAndSwap(was, next) {
			return nil
		}
	}
	return ErrDamaged
}

// Marks returns the bits that Mark has set in a word; none for a use of which none is known.
func (a *Arena) Marks(h hostabi.Handle, word int) uint32 {
	if a.check(h) != nil {
		return 0
	}
	w := a.view.blocks[h.Block()].marks[word].Load()
	if uint32(w>>markShift) != uint32(h.Generation()) {
		return 0
	}
	return uint32(w)
}

// Claimed reports whether the block is committed and some process has a claim on it. Like Committed it claims none.
func (a *Arena) Claimed(h hostabi.Handle) bool {
	if a.check(h) != nil {
		return false
	}
	w := a.word(h.Block())
	return w.is(h.Generation(), stateLive) || w.is(h.Generation(), stateZombie)
}

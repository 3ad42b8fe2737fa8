package arena

import (
	"fmt"
	"runtime"

	"github.com/rlhost/rlhost/core/shm"
)

// Close withdraws the arena. From its first call on no block can be loaned, while claims that are out stay valid
// and can be given back. If any are out it returns ErrOpen and keeps the memory; call it again later. In builds
// with the tag invariants that error lists each loan and lease with the stack that took it.
//
// When it succeeds the memory of the blocks has gone back to the system. Every later use of the arena or of a
// handle is an error, also one that overlaps with Close: the header pages and the file go when the Arena itself
// is garbage. A guest window that is still mapped reads zeros. A further Close returns ErrClosed.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fmt.Errorf("arena %q: %w", a.config.Name, ErrClosed)
	}
	a.closing.Store(true)
	if out := a.withdraw(); out > 0 {
		s := a.Stats()
		return fmt.Errorf("arena %q: %w: %d blocks (%d loans, %d leases, %d holds of other processes)%s",
			a.config.Name, ErrOpen, out, s.Loans, s.Leases, s.Others, a.track.report())
	}
	a.closed = true
	runtime.AddCleanup(a, func(seg *shm.Segment) { _ = seg.Close() }, a.seg) // nobody is left to hear of it
	if err := a.seg.Discard(a.layout.dataAt); err != nil {
		return fmt.Errorf("arena %q: close: %w", a.config.Name, err)
	}
	return nil
}

// withdraw closes all blocks that are free and returns how many are not.
func (a *Arena) withdraw() int {
	out := 0
	for block := range uint32(a.layout.blocks) {
		w := a.word(block)
		for w.state() == stateFree && !a.swap(block, w, makeWord(w.generation(), stateClosed, 0)) {
			w = a.word(block)
		}
		if w.state() != stateFree && w.state() != stateClosed {
			out++
		}
	}
	return out
}

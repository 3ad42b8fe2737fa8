package arena

import "fmt"

// Close withdraws the arena; in a process that has attached to it, Close only detaches. After its first call no block can be loaned here,
// while open claims stay valid and can be released. If any are open (of this process alone where it has attached) it returns ErrOpen and
// keeps the memory; call it again later. In builds with the tag invariants that error lists each loan and lease with the stack that took it.
//
// When it succeeds, the memory of the blocks has been returned to the system; the memory of a ReadOnly arena is freed with the last
// process that maps it. Every use of the arena or of a handle during or after Close is an error: the words and the files are
// released when the Arena is garbage collected. A guest window that is still mapped reads zeros. A further Close returns ErrClosed.
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
	a.keep()
	if !a.host() || a.config.ReadOnly { // sealed against writing, a file cannot have holes made in it either
		return nil
	}
	if err := a.data.Discard(0); err != nil {
		return fmt.Errorf("arena %q: close: %w", a.config.Name, err)
	}
	return nil
}

// withdraw closes all blocks that are free and returns how many are not. Where the arena belongs to another
// process it only counts the blocks that this one holds.
func (a *Arena) withdraw() int {
	out := 0
	for block := range uint32(a.layout.blocks) {
		c := a.claims(block)
		if c.holds() || c.closing() || a.host() && !a.withdrawBlock(block) {
			out++
		}
	}
	return out
}

func (a *Arena) withdrawBlock(block uint32) bool {
	for range maxTries {
		w := a.word(block)
		if w.state() != stateFree {
			return w.state() == stateClosed
		}
		if a.swap(block, w, makeWord(w.generation(), stateClosed, 0)) {
			return true
		}
	}
	return false
}

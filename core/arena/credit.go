package arena

import "github.com/rlhost/rlhost/hostabi"

// OnFree makes fn the receiver of the block's credits in this process, and this process the one that all others
// notify when they free the block; nil means none. From then on fn runs each time the block becomes free, once: on
// the goroutine that freed it if that was in this process, else on the one that calls Credit, with no lock held. It
// may take the block with LoanBlock at once, and must expect that another goroutine was faster. A block that is
// free already gives no credit: try LoanBlock after OnFree. A block that is taken and freed again meanwhile may
// give one credit for both. OnFree panics if there is no such block.
func (a *Arena) OnFree(block uint32, fn func(block uint32)) {
	l, creditor := &a.local[block], &a.view.blocks[block].creditor
	if fn == nil {
		l.onFree.Store(nil)
		creditor.CompareAndSwap(uint32(a.holder)+1, 0)
		return
	}
	g := a.word(block).generation()
	if floor := a.claims(block).generation(); !follows(g, floor) {
		g = floor
	}
	l.credited.Store(g)
	l.onFree.Store(&fn)
	creditor.Store(uint32(a.holder) + 1)
}

// Credit is for code that carries messages between processes: another process says that it has freed the block
// that h named. If that is so, and not known here yet, the block's receiver is called: the one of this process,
// or, at the host, that of another process through Set.Credits. What the other process says is not trusted.
// Errors: ErrForeign, ErrRange, ErrBusy if the block is not free, ErrSpent if this free was credited before or
// has no receiver.
func (a *Arena) Credit(h hostabi.Handle) error {
	if err := a.check(h); err != nil {
		return err
	}
	c, w := a.claims(h.Block()), a.word(h.Block())
	if w.state() != stateFree || !a.fits(c, w) {
		return ErrBusy
	}
	if !a.credit(h.Block(), w.generation()) {
		return ErrSpent
	}
	return nil
}

// fits reports whether a free block's word agrees with what this process knows.
func (b *blocks) fits(c claims, w word) bool {
	return !c.holds() && c.generation() != w.generation() && follows(w.generation(), c.generation())
}

// announce notifies the next writer that a block has just become free. generation is the block's new one.
func (a *Arena) announce(block uint32, generation uint64) {
	hints := &a.view.hints[block/hostabi.ArenaHintBlocks]
	if bit := hintBit(block); hints.Load()&bit == 0 {
		hints.Or(bit)
	}
	if a.local[block].onFree.Load() != nil || a.view.blocks[block].creditor.Load() != 0 {
		a.credit(block, generation)
	}
}

// credit passes the free of a block on to its receiver, once for each generation.
func (a *Arena) credit(block uint32, generation uint64) bool {
	l := &a.local[block]
	fn, tell := l.onFree.Load(), a.set.tell(a.creditor(block))
	if fn == nil && tell == nil {
		return false
	}
	for {
		last := l.credited.Load()
		if last == generation || last != 0 && !follows(generation, last) {
			return false
		}
		if l.credited.CompareAndSwap(last, generation) {
			break
		}
	}
	if fn != nil {
		(*fn)(block)
	} else {
		(*tell)(hostabi.MakeHandle(a.config.ID, block, previousGeneration(generation)))
	}
	return true
}

// creditor returns the other process that receives the block's credits, or -1. The number comes from shared memory.
func (b *blocks) creditor(block uint32) int {
	n := b.view.blocks[block].creditor.Load()
	if n == 0 || n > hostabi.MaxHolder+1 || int(n-1) == b.holder {
		return -1
	}
	return int(n - 1)
}

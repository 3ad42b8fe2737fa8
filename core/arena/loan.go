package arena

import (
	"math/bits"

	"github.com/rlhost/rlhost/hostabi"
)

// Loan is the single writer's claim on a block. It ends in Commit or Abort; copies of it are the same loan. The
// zero Loan is spent.
type Loan struct {
	a *Arena
	h hostabi.Handle
}

// Loan lends any free block, or returns ErrExhausted if at one moment of the call none was free.
func (a *Arena) Loan() (Loan, error) {
	if a.closing.Load() {
		return Loan{}, ErrClosed
	}
	words := a.layout.hints()
	start := int(a.view.header.cursor.Load())
	if start >= words {
		start = 0
	}
	for k := range words {
		at := start + k
		if at >= words {
			at -= words
		}
		if loan, err := a.loanHinted(at); err == nil {
			if k > 0 {
				a.view.header.cursor.Store(uint32(at))
			}
			return loan, nil
		}
	}
	return a.loanSearched()
}

// loanHinted tries the blocks that one word of hints calls free.
func (a *Arena) loanHinted(at int) (Loan, error) {
	for hint := a.view.hints[at].Load(); hint != 0; hint &= hint - 1 {
		block := uint32(at*hintBlocks + bits.TrailingZeros64(hint))
		if int(block) >= a.layout.blocks {
			break
		}
		if loan, err := a.take(block); err == nil {
			return loan, nil
		}
	}
	return Loan{}, ErrExhausted
}

// loanSearched looks at the words themselves. Two passes that find no free block and the same generations prove
// that between them none was free.
func (a *Arena) loanSearched() (Loan, error) {
	var before uint64
	for pass := 0; ; pass++ {
		var sum uint64
		for block := range uint32(a.layout.blocks) {
			w := a.word(block)
			for ; w.state() == stateFree; w = a.word(block) {
				if loan, err := a.take(block); err == nil {
					return loan, nil
				}
			}
			sum += w.generation()
		}
		if pass > 0 && sum == before {
			return Loan{}, ErrExhausted
		}
		before = sum
	}
}

// LoanBlock lends one certain block, or returns ErrBusy if it is not free.
func (a *Arena) LoanBlock(block uint32) (Loan, error) {
	if int64(block) >= int64(a.layout.blocks) {
		return Loan{}, ErrRange
	}
	if a.closing.Load() {
		return Loan{}, ErrClosed
	}
	return a.take(block)
}

// take is FREE → WRITE. The hint goes after the word: a hint too many costs a look, one too few would hide the
// block from Loan until it searches.
func (a *Arena) take(block uint32) (Loan, error) {
	for {
		w := a.word(block)
		if w.state() != stateFree {
			return Loan{}, ErrBusy
		}
		if a.swap(block, w, makeWord(w.generation(), stateWrite, a.me)) {
			a.view.hints[block/hintBlocks].And(^(uint64(1) << (block % hintBlocks)))
			h := hostabi.MakeHandle(a.config.ID, block, w.generation())
			a.track.loaned(h)
			return Loan{a, h}, nil
		}
	}
}

// Handle returns the handle that the block will have once it is committed.
func (l Loan) Handle() hostabi.Handle { return l.h }

// Block returns the index of the block.
func (l Loan) Block() uint32 { return l.h.Block() }

// Bytes returns the block to write to, contents undefined, valid until Commit or Abort; nil after them.
func (l Loan) Bytes() []byte {
	if l.a == nil || l.a.word(l.Block()) != l.writing() {
		return nil
	}
	return l.a.bytes(l.Block())
}

// writing is the block's word while the loan is open.
func (l Loan) writing() word { return makeWord(l.h.Generation(), stateWrite, l.a.me) }

// Commit makes the block readable, WRITE → LIVE, and leaves the caller with one claim on it, to be given back
// with Release of the returned handle. It returns ErrSpent if the loan has ended.
func (l Loan) Commit() (hostabi.Handle, error) {
	a, block := l.a, l.Block()
	if a == nil || !a.track.endLoan(l.h) || !a.claimFirst(l) {
		return 0, ErrSpent
	}
	if !a.swap(block, l.writing(), makeWord(l.h.Generation(), stateLive, a.me)) {
		a.unclaimFirst(l.h)
		return 0, ErrSpent
	}
	a.track.retained(l.h)
	return l.h, nil
}

// Abort gives the block back unwritten, WRITE → FREE; its handle will never be valid. It returns ErrSpent if the
// loan has ended.
func (l Loan) Abort() error {
	a, block := l.a, l.Block()
	if a == nil || !a.track.endLoan(l.h) {
		return ErrSpent
	}
	if invariants {
		poison(a.bytes(block))
	}
	w := l.writing()
	if !a.swap(block, w, w.freed()) {
		return ErrSpent
	}
	a.view.blocks[block].aborts.Add(1)
	a.announce(block)
	return nil
}

// Loaned returns the bytes of a block that is on loan, for a component that its writer has asked to write part
// of it. The asker keeps the loan until it has been answered, so the bytes stay valid that long; it is the
// asker's word that orders the writes. Errors: ErrForeign, ErrRange, ErrStale if the loan has ended.
func (a *Arena) Loaned(h hostabi.Handle) ([]byte, error) {
	if err := a.check(h); err != nil {
		return nil, err
	}
	if !a.word(h.Block()).is(h.Generation(), stateWrite) {
		return nil, ErrStale
	}
	return a.bytes(h.Block()), nil
}

// announce tells the next writer of a block that has just become free.
func (a *Arena) announce(block uint32) {
	a.view.hints[block/hintBlocks].Or(1 << (block % hintBlocks))
	if fn := a.local[block].onFree.Load(); fn != nil {
		(*fn)(block)
	}
}

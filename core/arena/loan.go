package arena

import (
	"errors"
	"math/bits"

	"github.com/rlhost/rlhost/hostabi"
)

// Loan is the single writer's claim on a block. It ends in Commit or Abort; copies of it are the same loan. The
// zero Loan is spent.
type Loan struct {
	a *Arena
	h hostabi.Handle
}

// Loan loans any free block, or returns ErrExhausted if at one moment of the call none was free. Other errors: ErrClosed, ErrReadOnly.
func (a *Arena) Loan() (Loan, error) {
	if err := a.lends(); err != nil {
		return Loan{}, err
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

func (a *Arena) lends() error {
	if a.closing.Load() {
		return ErrClosed
	}
	if !a.writable() {
		return ErrReadOnly
	}
	return nil
}

func hintBit(block uint32) uint64 { return 1 << (block % hostabi.ArenaHintBlocks) }

// loanHinted tries the blocks that one word of hints calls free. A hint stays when its block is taken and is
// cleared when found wrong: a wrong hint costs one check, and a block that is taken and freed in turn costs none.
func (a *Arena) loanHinted(at int) (Loan, error) {
	for hint := a.view.hints[at].Load(); hint != 0; hint &= hint - 1 {
		block := uint32(at*hostabi.ArenaHintBlocks + bits.TrailingZeros64(hint))
		if int(block) >= a.layout.blocks {
			break
		}
		if loan, err := a.take(block); err == nil {
			return loan, nil
		}
		a.view.hints[at].And(^hintBit(block))
		if a.word(block).state() == stateFree { // freed since, by a goroutine that saw the hint set
			a.view.hints[at].Or(hintBit(block))
		}
	}
	return Loan{}, ErrExhausted
}

// maxPasses bounds a search in an arena whose words keep changing.
const maxPasses = 1 << 10

// loanSearched looks at the words themselves. Two passes that find no free block and the same generations prove
// that between them none was free.
func (a *Arena) loanSearched() (Loan, error) {
	var before uint64
	for pass := range maxPasses {
		var sum uint64
		for block := range uint32(a.layout.blocks) {
			w := a.word(block)
			for try := 0; w.state() == stateFree && try < maxPasses; try++ {
				loan, err := a.take(block)
				if err == nil {
					return loan, nil
				}
				if errors.Is(err, ErrDamaged) {
					break
				}
				w = a.word(block)
			}
			sum += w.generation()
		}
		if pass > 0 && sum == before {
			break
		}
		before = sum
	}
	return Loan{}, ErrExhausted
}

// LoanBlock loans the given block, or returns ErrBusy if it is not free. Other errors: ErrRange, ErrClosed, ErrReadOnly.
func (a *Arena) LoanBlock(block uint32) (Loan, error) {
	if int64(block) >= int64(a.layout.blocks) {
		return Loan{}, ErrRange
	}
	if err := a.lends(); err != nil {
		return Loan{}, err
	}
	loan, err := a.take(block)
	if err != nil {
		return Loan{}, ErrBusy
	}
	return loan, nil
}

// take is FREE → WRITE, or ErrBusy. A free block has a generation that this process has never claimed. A block
// whose word says otherwise was damaged and must not be loaned before Sweep has repaired it: ErrDamaged.
func (a *Arena) take(block uint32) (Loan, error) {
	counter := &a.local[block].claims
	for range maxTries {
		w := a.word(block)
		if w.state() != stateFree {
			return Loan{}, ErrBusy
		}
		g, c := w.generation(), claims(counter.Load())
		if c.holds() || g == c.generation() || !follows(g, c.generation()) {
			if a.word(block) == w {
				return Loan{}, ErrDamaged
			}
			continue
		}
		if !a.swap(block, w, makeWord(g, stateWrite, a.me)) {
			continue
		}
		if counter.CompareAndSwap(uint64(c), uint64(makeClaims(g, claimLoan))) || a.loaned(block, g) {
			h := hostabi.MakeHandle(a.config.ID, block, g)
			a.track.loaned(h)
			return Loan{a, h}, nil
		}
	}
	return Loan{}, ErrDamaged
}

// loaned records the loan of a block whose word is WRITE. It fails if Sweep has timed out and taken the block
// back.
func (a *Arena) loaned(block uint32, generation uint64) bool {
	counter := &a.local[block].claims
	for {
		c := claims(counter.Load()) // the last claim of the previous use may not have ended
		if c.generation() == generation {
			return false
		}
		if counter.CompareAndSwap(uint64(c), uint64(makeClaims(generation, claimLoan))) {
			return true
		}
	}
}

// Handle returns the handle that the block will have once it is committed.
func (l Loan) Handle() hostabi.Handle { return l.h }

// Block returns the index of the block.
func (l Loan) Block() uint32 { return l.h.Block() }

// Bytes returns the block to write to, contents undefined, valid until Commit or Abort; nil after them.
func (l Loan) Bytes() []byte {
	if l.a == nil || l.a.claims(l.Block()) != makeClaims(l.h.Generation(), claimLoan) {
		return nil
	}
	return l.a.bytes(l.Block())
}

// end ends the loan in this process, for one caller alone.
func (l Loan) end(left claims) bool {
	return l.a != nil && l.a.track.endLoan(l.h) && l.a.local[l.Block()].claims.CompareAndSwap(
		uint64(makeClaims(l.h.Generation(), claimLoan)), uint64(makeClaims(l.h.Generation(), left)))
}

// writing is the block's word while the loan is open.
func (l Loan) writing() word { return makeWord(l.h.Generation(), stateWrite, l.a.me) }

// Commit makes the block readable, WRITE → LIVE, and leaves the caller one claim on it, which Release of the
// returned handle ends. It returns ErrSpent if the loan has ended.
func (l Loan) Commit() (hostabi.Handle, error) {
	if !l.end(1) { // the claim exists before any process can see the block
		return 0, ErrSpent
	}
	a, block := l.a, l.Block()
	live := makeWord(l.h.Generation(), stateLive, a.me)
	if !a.swap(block, l.writing(), live) && !a.word(block).held(l.h.Generation(), a.me) {
		if !a.host() {
			a.local[block].claims.CompareAndSwap(uint64(makeClaims(l.h.Generation(), 1)), uint64(makeClaims(l.h.Generation(), 0)))
			return 0, ErrSpent
		}
		a.view.blocks[block].word.Store(uint64(live)) // the word was damaged; the host's loan stays valid
	}
	a.track.retained(l.h)
	return l.h, nil
}

// Abort returns the block unwritten, WRITE → FREE; its handle will never be valid. It returns ErrSpent if the
// loan has ended.
func (l Loan) Abort() error {
	if !l.end(claimOver) {
		return ErrSpent
	}
	a, block := l.a, l.Block()
	if invariants {
		poison(a.bytes(block))
	}
	w := l.writing()
	if !a.swap(block, w, w.freed()) {
		if a.host() {
			return nil // the word was damaged; Sweep frees the block
		}
		return ErrSpent
	}
	a.view.blocks[block].aborts.Add(1)
	a.announce(block, w.freed().generation())
	return nil
}

// Loaned returns the bytes of a block that is on loan, for a component that the writer has asked to write part of
// it. The writer keeps the loan until it gets the answer, so the bytes stay valid that long; its messages order
// the writes. Errors: ErrForeign, ErrRange, ErrReadOnly, ErrStale if the loan has ended.
func (a *Arena) Loaned(h hostabi.Handle) ([]byte, error) {
	if err := a.check(h); err != nil {
		return nil, err
	}
	if !a.writable() {
		return nil, ErrReadOnly
	}
	own := a.claims(h.Block()) == makeClaims(h.Generation(), claimLoan)
	if !own && !a.word(h.Block()).is(h.Generation(), stateWrite) {
		return nil, ErrStale
	}
	return a.bytes(h.Block()), nil
}

package arena

import "github.com/rlhost/rlhost/hostabi"

// Loaned returns the bytes of a block that is on loan, for a component that its writer has asked to write part
// of it. The asker keeps the loan until it has been answered, so the bytes stay valid that long; it is the
// asker's word that orders the writes. A handle whose loan has ended is ErrStale.
func (a *Arena) Loaned(h hostabi.Handle) ([]byte, error) {
	if h.Arena() != a.ID() {
		return nil, ErrForeign
	}
	if int64(h.Block()) >= int64(a.layout.blocks) {
		return nil, ErrRange
	}
	if !a.word(h.Block()).is(h.Generation(), stateWrite) {
		return nil, ErrStale
	}
	return a.bytes(h.Block()), nil
}

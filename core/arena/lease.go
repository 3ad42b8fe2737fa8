package arena

import "github.com/rlhost/rlhost/hostabi"

// Lease is a reader's claim on a committed block. It ends in Release. The zero Lease is spent. A Lease is a value for one
// goroutine. It may be passed on, but only one copy may be released: only builds with the tag invariants notice a second release.
type Lease struct {
	a      *Arena // nil: spent
	h      hostabi.Handle
	ticket ticket
}

// Lease claims the block that h names, for reading. Errors: ErrForeign, ErrRange, ErrState before its commit,
// ErrStale.
func (a *Arena) Lease(h hostabi.Handle) (Lease, error) {
	if err := a.enter(h); err != nil {
		return Lease{}, err
	}
	return Lease{a, h, a.track.leased(h)}, nil
}

// Handle returns the handle that was leased.
func (l *Lease) Handle() hostabi.Handle { return l.h }

// Bytes returns the block, to read only, valid until Release; nil after it.
func (l *Lease) Bytes() []byte {
	if l.a == nil {
		return nil
	}
	if c := l.a.claims(l.h.Block()); c.generation() != l.h.Generation() || c.count() == 0 {
		return nil // released by its handle
	}
	return l.a.bytes(l.h.Block())
}

// Release ends the claim; the last one frees the block. A second Release returns ErrSpent.
func (l *Lease) Release() error {
	a := l.a
	if a == nil {
		return ErrSpent
	}
	l.a = nil
	if !a.track.endLease(l.h, l.ticket) {
		return ErrSpent
	}
	if err := a.leave(l.h); err != nil {
		return ErrSpent
	}
	return nil
}

package arena

import "errors"

// Errors that callers decide on. Operations on the hot path return them bare, without allocating.
var (
	// ErrExhausted: no block is free. OnFree announces frees.
	ErrExhausted = errors.New("arena: no free block")
	// ErrBusy: the requested block is not free.
	ErrBusy = errors.New("arena: block is not free")
	// ErrStale: the handle's use of its block has ended, was revoked, or never began.
	ErrStale = errors.New("arena: stale handle")
	// ErrForeign: the handle belongs to another arena, or to none.
	ErrForeign = errors.New("arena: handle of another arena")
	// ErrRange: the arena has no block of that index.
	ErrRange = errors.New("arena: block out of range")
	// ErrState: the block is still being written.
	ErrState = errors.New("arena: block is not committed")
	// ErrSpent: the loan, claim or credit was given back before.
	ErrSpent = errors.New("arena: claim is spent")
	// ErrClaims: the block has as many claims as can be counted.
	ErrClaims = errors.New("arena: too many claims on one block")
	// ErrReadOnly: this process can only read the arena.
	ErrReadOnly = errors.New("arena: only its maker writes it")
	// ErrDamaged: a process keeps writing invalid values into the block's word. Sweep of that process repairs
	// it.
	ErrDamaged = errors.New("arena: block word is damaged")
	// ErrOpen: the arena cannot be closed because claims are open.
	ErrOpen = errors.New("claims are out")
	// ErrClosed: the arena has been closed and gives out no more blocks.
	ErrClosed = errors.New("arena: closed")
	// ErrLayout: a segment is not the arena that was announced.
	ErrLayout = errors.New("segment does not fit its description")
	// ErrHolders: every holder number is in use.
	ErrHolders = errors.New("too many processes")
	// ErrHost: only the process that made the arenas can do that.
	ErrHost = errors.New("only the host can do that")
)

package wire

import "errors"

// Errors that callers decide on. They come wrapped in a text that names the object, the entry and the limit.
var (
	// ErrNotFound: there is no object of that name or number.
	ErrNotFound = errors.New("no such object")
	// ErrExists: there is an object of that name already.
	ErrExists = errors.New("object exists")
	// ErrRemoved: the object was removed while it was used.
	ErrRemoved = errors.New("object was removed")
	// ErrNoEntry: the object has no entry of that index: deleted, popped, or not committed yet.
	ErrNoEntry = errors.New("no such entry")
	// ErrEmpty: the object has no entry, or none that is new enough.
	ErrEmpty = errors.New("object is empty")
	// ErrFull: every block of the object is in use.
	ErrFull = errors.New("object is full")
	// ErrBusy: the entry is being read.
	ErrBusy = errors.New("entry is being read")
	// ErrLocked: the entry is locked by another.
	ErrLocked = errors.New("entry is locked")
	// ErrSpent: the claim has been released already.
	ErrSpent = errors.New("claim is spent")
	// ErrForeign: the claim belongs to another session.
	ErrForeign = errors.New("claim of another session")
	// ErrKind: a claim for reading was used to write, or the other way round.
	ErrKind = errors.New("claim of the other kind")
	// ErrTooLarge: a value does not fit its block.
	ErrTooLarge = errors.New("larger than the block")
	// ErrTracks: the number of values is not the number of tracks.
	ErrTracks = errors.New("wrong number of tracks")
	// ErrDType: a value's type is unknown, or not that of its track.
	ErrDType = errors.New("wrong dtype")
	// ErrLimit: a number is outside the store's limits.
	ErrLimit = errors.New("limit exceeded")
	// ErrClosed: the session or the store has been closed.
	ErrClosed = errors.New("closed")
	// ErrCanceled: the operation was cancelled while it waited.
	ErrCanceled = errors.New("canceled")
	// ErrRequest: the request makes no sense.
	ErrRequest = errors.New("bad request")
)

package store

import (
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// OpKind is the kind of an Op.
type OpKind uint8

// Operations. Each takes the fields of Op that its comment names, and fills in the fields after the arrow.
const (
	// OpOpen waits until an object of a name exists. Name, Wait → Object. ErrNotFound.
	OpOpen OpKind = iota + 1
	// OpNew takes a block to write. Object, Wait → Claim, Block. ErrFull.
	OpNew
	// OpSpare takes a spare block to write, if there is one and the session has none of this object yet; it does not
	// wait. Object → Claim, Block, both 0 if there is none.
	OpSpare
	// OpCommit makes a written block an entry and ends the claim; a spare block may have to wait for room, and stays
	// the session's if it finds none. With Next it takes a spare block as OpSpare does. Claim, Values, Next, Wait →
	// Index, Spare, SpareBlock. ErrFull, ErrTracks, ErrDType, ErrTooLarge; after the last three the writer still owns
	// the block.
	OpCommit
	// OpAbort frees a block unwritten. Claim.
	OpAbort
	// OpRead claims the entry of an index to read, and waits for a future one. Object, Index, Wait →
	// Claim, Views. ErrNoEntry.
	OpRead
	// OpLatest claims the newest entry to read, if its index is Index or more. Object, Index, Wait → Claim, Views.
	// ErrEmpty.
	OpLatest
	// OpPop takes the oldest entry out of the object and claims it to read. Other readers keep it until they release
	// it. With Lend the block counts as a spare one from then on, if one is left: it takes no room while the session
	// keeps it. Object, Lend, Wait → Claim, Views, Lent. ErrEmpty.
	OpPop
	// OpBatch claims all entries of Indices or none, as one claim. Without Indices it claims the oldest entries from
	// Index on, at most Most. Object, Indices or Index and Most → Claim, Views. ErrNoEntry.
	OpBatch
	// OpRelease ends a claim to read. Claim.
	OpRelease
	// OpDelete removes an entry from the object. While it is read that is ErrBusy; with Revoke its readers keep it
	// until they release it. Object, Index, Revoke. ErrNoEntry.
	OpDelete
	// OpLock locks the entry of a claim to read against others that lock it: with Alone against all of them, to write it in place, else
	// against a claim that has it alone. A later claim waits behind earlier ones. Claim, Alone, Wait → Torn. ErrLocked, ErrRequest; ErrRemoved
	// with Alone, for what an entry was before its object grew.
	OpLock
	// OpUnlock ends the lock of a claim. With Tear the entry is torn from then on, with Mend it is not any more. A claim that ends without
	// it leaves an entry torn that it had alone. Claim, Tear, Mend. ErrSpent.
	OpUnlock
)

// Op is one operation of a session. The caller must not touch it until Done is called. An Op can be reused, which saves
// its memory.
type Op struct {
	Kind    OpKind
	Next    bool
	Revoke  bool
	Lend    bool
	Alone   bool
	Tear    bool
	Mend    bool
	Object  uint32
	Claim   uint64
	Index   uint64
	Wait    time.Duration // how long the operation may wait; Forever: without a limit
	Name    string
	Values  []wire.Value
	Indices []uint64
	Most    int

	// Release, if not 0, is a claim to read that is ended first, even if the operation fails.
	Release uint64

	// Done is called once, with no lock held, before or after Do returns, on any goroutine. It must not block.
	Done func(*Op)

	Err        error
	Block      uint32
	Spare      uint64
	SpareBlock uint32
	Lent       bool
	Torn       bool
	Views      []wire.View

	session    *Session
	object     *object
	queue      *queue
	prev, next *Op    // in queue
	ended      *Op    // in Store.finished
	turn       uint64 // distinguishes one wait from the next
	timer      *time.Timer
	values     []wire.Value // of Views
}

// reset clears the results of an earlier use.
func (op *Op) reset(s *Session) {
	op.Err, op.Block, op.Spare, op.SpareBlock, op.Lent, op.Torn = nil, 0, 0, 0, false, false
	op.Views, op.values = op.Views[:0], op.values[:0]
	op.session, op.object, op.timer = s, nil, nil
}

// queue is a list of operations in order of arrival. The zero queue is empty.
type queue struct {
	head, tail *Op
	length     int
}

func (q *queue) push(op *Op) {
	op.queue, op.prev, op.next = q, q.tail, nil
	if q.tail != nil {
		q.tail.next = op
	} else {
		q.head = op
	}
	q.tail = op
	q.length++
}

func (q *queue) remove(op *Op) {
	if op.prev != nil {
		op.prev.next = op.next
	} else {
		q.head = op.next
	}
	if op.next != nil {
		op.next.prev = op.prev
	} else {
		q.tail = op.prev
	}
	op.queue, op.prev, op.next = nil, nil, nil
	q.length--
}

func (q *queue) pop() *Op {
	op := q.head
	if op != nil {
		q.remove(op)
	}
	return op
}

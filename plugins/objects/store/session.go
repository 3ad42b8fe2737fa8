package store

import (
	"context"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// claimKind is the right of a claim.
type claimKind uint8

const (
	claimWrite claimKind = iota + 1
	claimRead
)

// claim is one session's right to a block, or to read a batch of them.
type claim struct {
	kind   claimKind
	busy   bool // one of its commits waits
	object *object
	block  int32
	batch  []int32 // nil: block alone
	lock   lockKind
}

// Session is a user of a store, and the owner of its claims.
type Session struct {
	store *Store
	id    uint64
	name  string

	// Guarded by the store's lock.
	closed bool
	claims map[uint64]claim
	waits  map[*Op]struct{}
}

// Session begins a session; the name is informational. It must be closed.
func (s *Store) Session(name string) (*Session, error) {
	u := &Session{store: s, name: name, claims: map[uint64]claim{}, waits: map[*Op]struct{}{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("session %q: store: %w", name, wire.ErrClosed)
	}
	s.lastUser++
	u.id = s.lastUser
	s.sessions[u.id] = u
	return u, nil
}

// Do starts an operation, and calls its Done when it is over.
func (u *Session) Do(op *Op) { u.store.turn(func() { u.start(op) }) }

// Wait does an operation and returns its error, which is also in op.Err. If ctx ends first the operation is cancelled
// and the error is ctx's.
func (u *Session) Wait(ctx context.Context, op *Op) error {
	over := make(chan struct{})
	op.Done = func(*Op) { close(over) }
	u.Do(op)
	select {
	case <-over:
	case <-ctx.Done():
		u.Cancel(op, ctx.Err())
		<-over
	}
	return op.Err
}

// Memory returns the block of a claim to write in one track, for a user in this process, until the claim ends. Errors: as of OpAbort,
// and ErrTracks.
func (u *Session) Memory(claim uint64, track int) ([]byte, error) {
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	c, err := u.find(claim, claimWrite)
	if err != nil {
		return nil, err
	}
	if track < 0 || track >= len(c.object.columns) {
		return nil, fmt.Errorf("object %q: track %d: %w: it has %d", c.object.name, track, wire.ErrTracks, len(c.object.columns))
	}
	col := c.object.columns[track]
	at := col.At + int(c.block)*col.Stride
	return c.object.seg.Bytes()[at : at+col.Track.Bytes : at+col.Track.Bytes], nil
}

// Cancel ends a waiting operation with err, and ignores any other. op must be an operation of the session whose Done
// has not returned.
func (u *Session) Cancel(op *Op, err error) {
	u.store.turn(func() {
		if op.queue != nil {
			u.store.cancel(op, err)
		}
	})
}

// Close ends the session: its waiting operations fail with ErrClosed, blocks it was writing are freed unwritten,
// entries it was reading are released. A second Close returns ErrClosed.
func (u *Session) Close() error {
	var err error
	u.store.turn(func() { err = u.end() })
	return err
}

// end is Close with the lock held.
func (u *Session) end() error {
	if u.closed {
		return fmt.Errorf("session %q: %w", u.name, wire.ErrClosed)
	}
	u.closed = true
	delete(u.store.sessions, u.id)
	for op := range u.waits {
		u.store.cancel(op, fmt.Errorf("session %q: %w", u.name, wire.ErrClosed))
	}
	for id, c := range u.claims {
		u.endClaim(id, c)
	}
	return nil
}

// start does an operation or makes it wait. The caller holds the lock, as for all functions below.
func (u *Session) start(op *Op) {
	op.reset(u)
	if u.closed {
		u.store.finish(op, fmt.Errorf("session %q: %w", u.name, wire.ErrClosed))
		return
	}
	if op.Release != 0 {
		if err := u.release(op.Release); err != nil {
			u.store.finish(op, err)
			return
		}
	}
	q, err := u.try(op)
	if q == nil || op.Wait == 0 {
		u.store.finish(op, err)
		return
	}
	if len(u.waits) >= u.store.limits.Waiting {
		u.store.finish(op, fmt.Errorf("session %q: %w: %d operations wait", u.name, wire.ErrLimit, len(u.waits)))
		return
	}
	u.store.park(op, q)
}

// park makes an operation wait until its queue is served, or its time is over.
func (s *Store) park(op *Op, q *queue) {
	u := op.session
	u.waits[op] = struct{}{}
	q.push(op)
	if c, ok := u.claims[op.Claim]; ok && op.Kind == OpCommit {
		c.busy = true
		u.claims[op.Claim] = c
	}
	if op.object != nil {
		op.object.counters.Waits++
	}
	if op.Wait < 0 {
		return
	}
	op.turn++
	turn := op.turn
	op.timer = time.AfterFunc(op.Wait, func() {
		s.turn(func() {
			if op.queue != nil && op.turn == turn {
				s.expire(op)
			}
		})
	})
}

// expire finishes an operation whose time is over, with the error that made it wait.
func (s *Store) expire(op *Op) {
	_, err := op.session.try(op)
	if err != nil {
		err = fmt.Errorf("%w after %v", err, op.Wait)
	}
	s.cancel(op, err)
}

// cancel takes an operation out of its queue and finishes it.
func (s *Store) cancel(op *Op, err error) {
	op.queue.remove(op)
	if op.Kind == OpLock {
		s.touch(op.object) // who waited behind it may be next
	}
	s.finish(op, err)
}

// finish ends an operation that is in no queue; Done is called at the end of the turn.
func (s *Store) finish(op *Op, err error) {
	u := op.session
	op.Err = err
	op.turn++
	if op.timer != nil {
		op.timer.Stop()
		op.timer = nil
	}
	delete(u.waits, op)
	if c, ok := u.claims[op.Claim]; ok && c.busy && op.Kind == OpCommit {
		c.busy = false
		u.claims[op.Claim] = c
	}
	if s.lastEnded == nil {
		s.lastEnded = &s.finished
	}
	*s.lastEnded = op
	s.lastEnded = &op.ended
}

// touch marks an object whose waiting operations may have become possible; the end of the turn tries them.
func (s *Store) touch(o *object) {
	if !o.touched {
		o.touched = true
		s.touched = append(s.touched, o)
	}
}

// serve does the waiting operations of an object that have become possible: first reads, then pops, and then, with the
// blocks freed by now, writes.
func (s *Store) serve(o *object) {
	for op := o.reads.head; op != nil; {
		next := op.next
		s.retry(op)
		op = next
	}
	for o.count > 0 && o.pops.head != nil {
		s.retry(o.pops.head)
	}
	for o.hasRoom() && o.room.head != nil {
		s.retry(o.room.head)
	}
	s.serveLocks(o)
}

// retry tries a waiting operation again.
func (s *Store) retry(op *Op) {
	q, err := op.session.try(op)
	if q == nil {
		s.cancel(op, err)
	}
}

// give adds a claim to the session.
func (u *Session) give(c claim) uint64 {
	u.store.lastClaim++
	u.claims[u.store.lastClaim] = c
	return u.store.lastClaim
}

// find returns a claim of the session, of the given kind.
func (u *Session) find(id uint64, kind claimKind) (claim, error) {
	c, ok := u.claims[id]
	switch {
	case !ok:
		return claim{}, u.noClaim(id)
	case c.kind != kind:
		return claim{}, fmt.Errorf("object %q: claim %d: %w", c.object.name, id, wire.ErrKind)
	case c.busy:
		return claim{}, fmt.Errorf("object %q: claim %d: %w: it is being committed", c.object.name, id, wire.ErrSpent)
	}
	return c, nil
}

// noClaim returns why the session has no claim of that number.
func (u *Session) noClaim(id uint64) error {
	for _, other := range u.store.sessions {
		if c, ok := other.claims[id]; ok {
			return fmt.Errorf("object %q: claim %d: %w", c.object.name, id, wire.ErrForeign)
		}
	}
	if id == 0 || id > u.store.lastClaim {
		return fmt.Errorf("claim %d: %w: never given out", id, wire.ErrSpent)
	}
	return fmt.Errorf("claim %d: %w", id, wire.ErrSpent)
}

// endClaim ends a claim of any kind.
func (u *Session) endClaim(id uint64, c claim) {
	if c.kind == claimRead {
		u.abandonLock(id, c)
	}
	delete(u.claims, id)
	o := c.object
	if c.kind == claimWrite {
		if o.entries[c.block].state == stateSpare {
			delete(o.spareOf, u)
		} else {
			o.counters.Aborts++
		}
		o.claims--
		o.drop(c.block)
	} else if c.batch == nil {
		o.release(c.block)
	}
	for _, b := range c.batch {
		o.release(b)
	}
	u.store.touch(o)
	u.store.endIfUnused(o)
}

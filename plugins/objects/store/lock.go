package store

import (
	"fmt"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// lockKind is how a claim has locked its entry.
type lockKind uint8

const (
	unlocked lockKind = iota
	lockedShared
	lockedAlone
)

// lock is the state of an entry that is locked or waited for.
type lock struct {
	alone   bool
	sharers int
	waiting queue // in order of arrival: who comes later waits behind
}

// lockOf returns the lock of a block.
func (o *object) lockOf(b int32) *lock {
	l := o.locks[b]
	if l == nil {
		if o.locks == nil {
			o.locks = map[int32]*lock{}
		}
		l = &lock{}
		o.locks[b] = l
	}
	return l
}

// lock locks the entry of a claim to read.
func (u *Session) lock(op *Op) (*queue, error) {
	c, err := u.find(op.Claim, claimRead)
	if err != nil {
		return nil, err
	}
	o := c.object
	op.object = o
	switch {
	case c.batch != nil:
		return nil, fmt.Errorf("object %q: claim %d: %w: entries of a batch cannot be locked", o.name, op.Claim, wire.ErrRequest)
	case c.lock != unlocked:
		return nil, fmt.Errorf("object %q: entry %d: %w: this claim has locked it already", o.name, o.entries[c.block].index, wire.ErrRequest)
	case op.Alone && o.successor != nil:
		return nil, fmt.Errorf("object %q: entry %d: %w: it has grown, and this is what the entry was before", o.name, o.entries[c.block].index, wire.ErrRemoved)
	}
	l := o.lockOf(c.block)
	if l.waiting.head != nil && l.waiting.head != op || l.alone || op.Alone && l.sharers > 0 {
		return &l.waiting, fmt.Errorf("object %q: entry %d: %w", o.name, o.entries[c.block].index, wire.ErrLocked)
	}
	if op.Alone {
		c.lock, l.alone = lockedAlone, true
	} else {
		c.lock = lockedShared
		l.sharers++
	}
	u.claims[op.Claim] = c
	op.Torn = o.entries[c.block].torn
	return nil, nil
}

// unlock ends the lock of a claim.
func (u *Session) unlock(op *Op) error {
	c, err := u.find(op.Claim, claimRead)
	if err != nil {
		return err
	}
	if c.lock == unlocked {
		return fmt.Errorf("object %q: claim %d: %w: it has no lock", c.object.name, op.Claim, wire.ErrSpent)
	}
	if c.lock == lockedAlone && (op.Tear || op.Mend) {
		c.object.entries[c.block].torn = op.Tear
	}
	c.unlock()
	u.claims[op.Claim] = c
	u.store.touch(c.object)
	return nil
}

// unlock ends the claim's lock.
func (c *claim) unlock() {
	l := c.object.locks[c.block]
	if c.lock == lockedAlone {
		l.alone = false
	} else {
		l.sharers--
	}
	c.lock = unlocked
	c.object.forgetLock(c.block, l)
}

// forgetLock deletes a lock that nobody has or waits for.
func (o *object) forgetLock(b int32, l *lock) {
	if l != nil && !l.alone && l.sharers == 0 && l.waiting.head == nil {
		delete(o.locks, b)
	}
}

// abandonLock ends what a claim that ends has locked, or waits to lock. An entry that was being written in place is torn.
func (u *Session) abandonLock(id uint64, c claim) {
	for op := range u.waits {
		if op.Kind == OpLock && op.Claim == id {
			u.store.cancel(op, fmt.Errorf("object %q: claim %d: %w", c.object.name, id, wire.ErrSpent))
		}
	}
	if c.lock == lockedAlone {
		c.object.entries[c.block].torn = true
	}
	if c.lock != unlocked {
		c.unlock()
	}
	c.object.forgetLock(c.block, c.object.locks[c.block])
}

// serveLocks gives the locks that have become free to who waits for them, in order.
func (s *Store) serveLocks(o *object) {
	for b, l := range o.locks {
		for op := l.waiting.head; op != nil; op = l.waiting.head {
			s.retry(op)
			if l.waiting.head == op {
				break
			}
		}
		o.forgetLock(b, l)
	}
}

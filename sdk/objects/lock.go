package objects

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// ErrTorn says that a program that was writing the entry in place did not finish.
var ErrTorn = errors.New("the program that was writing it in place did not finish: write it again under Repair, or delete it")

// Lock is the lock of an entry. It ends in Unlock or Tear, and with its entry: an entry that is released, whose store is
// closed or whose process dies while it is locked to write is torn from then on.
type Lock struct {
	entry *Entry
	kind  lockKind
	ended atomic.Bool
}

type lockKind uint8

const (
	toRead lockKind = iota
	toWrite
	toRepair
)

// Torn reports whether the entry was torn when it was claimed: a program that was writing it in place did not finish.
func (e *Entry) Torn() bool { return e.view.Torn }

// Lock locks the entry against all others that lock it, to write it in place, and waits for them: who asks first has it
// first. It binds only programs that lock; other views see what is being written. Errors: ErrLocked if ctx ends first,
// ErrTorn, ErrRemoved if the object has grown since, ErrSpent, and wire.ErrRequest for an entry of a batch.
func (e *Entry) Lock(ctx context.Context) (*Lock, error) { return e.lockAs(ctx, toWrite) }

// RLock is Lock to read beside others that read. Its arrays must not be written.
func (e *Entry) RLock(ctx context.Context) (*Lock, error) { return e.lockAs(ctx, toRead) }

// Repair is Lock, of a torn entry too, for a program that writes all of it again: Unlock makes the entry whole.
func (e *Entry) Repair(ctx context.Context) (*Lock, error) { return e.lockAs(ctx, toRepair) }

func (e *Entry) lockAs(ctx context.Context, kind lockKind) (*Lock, error) {
	if e.ended.Load() {
		return nil, fmt.Errorf("object %q: entry %d: %w", e.object.name, e.view.Index, ErrSpent)
	}
	request := wire.Request{Op: wire.OpLock, Claim: e.claim}
	if kind != toRead {
		request.Flags = wire.Alone
		if err := e.store.hold(ctx, e.object, writeMapping); err != nil {
			return nil, err
		}
	}
	l := &Lock{entry: e, kind: kind}
	reply, err := e.store.call(ctx, &request)
	if err != nil {
		l.drop()
		return nil, err
	}
	e.lock.Store(l)
	if reply.Spare != 0 && kind != toRepair {
		err := fmt.Errorf("object %q: entry %d: %w", e.object.name, e.view.Index, ErrTorn)
		return nil, errors.Join(err, l.unlock(0))
	}
	return l, nil
}

// Bytes returns the bytes of an array: shared memory, to write unless the lock is an RLock, valid until the lock ends; nil
// after it.
func (l *Lock) Bytes(track int) []byte {
	b := l.entry.Bytes(track)
	switch {
	case l.ended.Load() || b == nil:
		return nil
	case l.kind == toRead:
		return b
	}
	o := l.entry.object
	return o.block(o.write, track, l.entry.view.Block)[:len(b):len(b)]
}

// Unlock ends the lock. A second one returns ErrSpent.
func (l *Lock) Unlock() error {
	if l.kind == toRepair {
		return l.unlock(wire.Mend)
	}
	return l.unlock(0)
}

// Tear is Unlock of an entry that may be half written: from then on it is torn. An RLock tears nothing.
func (l *Lock) Tear() error {
	if l.kind == toRead {
		return l.unlock(0)
	}
	return l.unlock(wire.Tear)
}

func (l *Lock) unlock(flags wire.Flags) error {
	if !l.end() {
		return fmt.Errorf("object %q: entry %d: its lock: %w", l.entry.object.name, l.entry.view.Index, ErrSpent)
	}
	ctx, cancel := context.WithTimeout(NoWait(context.Background()), grace)
	defer cancel()
	_, err := l.entry.store.call(ctx, &wire.Request{Op: wire.OpUnlock, Flags: flags, Claim: l.entry.claim})
	return err
}

// end ends the lock in this process, and reports whether it was not over. The lock of an entry without one is nil.
func (l *Lock) end() bool {
	if l == nil || !l.ended.CompareAndSwap(false, true) {
		return false
	}
	l.drop()
	return true
}

// drop ends the use of the memory to write.
func (l *Lock) drop() {
	if l.kind != toRead {
		l.entry.object.drop()
	}
}

// Writable is where arrays are written in place: a Writing, or the Lock of an entry.
type Writable interface {
	// Bytes returns the bytes of an array.
	Bytes(track int) []byte

	typed() (object string, values []Value)
}

var (
	_ Writable = (*Writing)(nil)
	_ Writable = (*Lock)(nil)
)

func (w *Writing) typed() (object string, values []Value) { return w.object.name, w.values }

func (l *Lock) typed() (object string, values []Value) {
	return l.entry.object.name, l.entry.view.Values
}

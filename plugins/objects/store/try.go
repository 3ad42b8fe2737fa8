package store

import (
	"fmt"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// try does an operation if that is possible now. If not, it returns the reason and the queue to wait in; a nil queue
// means that the operation is over. It changes nothing when it returns a queue.
func (u *Session) try(op *Op) (*queue, error) {
	switch op.Kind {
	case OpOpen:
		return u.open(op)
	case OpCommit:
		return u.commit(op)
	case OpAbort:
		return nil, u.abort(op)
	case OpRelease:
		return nil, u.release(op.Claim)
	case OpLock:
		return u.lock(op)
	case OpUnlock:
		return nil, u.unlock(op)
	}
	o := u.store.objects[op.Object]
	if o == nil {
		return nil, u.store.absent(op.Object)
	}
	op.object = o
	if len(u.claims) >= u.store.limits.Claims && op.Kind != OpDelete {
		return nil, fmt.Errorf("object %q: %w: the session has %d claims", o.name, wire.ErrLimit, len(u.claims))
	}
	switch op.Kind {
	case OpNew:
		return u.begin(op, o)
	case OpSpare:
		op.Claim, op.Block = u.spare(o)
		return nil, nil
	case OpRead:
		return u.read(op, o)
	case OpLatest:
		return u.latest(op, o)
	case OpPop:
		return u.pop(op, o)
	case OpBatch:
		return nil, u.batch(op, o)
	case OpDelete:
		return nil, u.remove(op, o)
	}
	return nil, fmt.Errorf("operation %d: %w", op.Kind, wire.ErrRequest)
}

func (u *Session) open(op *Op) (*queue, error) {
	if o := u.store.names[op.Name]; o != nil {
		op.Object = o.id
		return nil, nil
	}
	return &u.store.opens, fmt.Errorf("object %q: %w", op.Name, wire.ErrNotFound)
}

// begin claims a block to write.
func (u *Session) begin(op *Op, o *object) (*queue, error) {
	if !o.hasRoom() {
		return &o.room, o.full()
	}
	b := o.take(stateWrite)
	o.claims++
	op.Block = uint32(b)
	op.Claim = u.give(claim{kind: claimWrite, object: o, block: b})
	return nil, nil
}

// spare claims a spare block, or returns 0.
func (u *Session) spare(o *object) (id uint64, block uint32) {
	if _, has := o.spareOf[u]; has || o.removed || !o.hasSpare() || len(u.claims) >= u.store.limits.Claims {
		return 0, 0
	}
	o.spareOf[u] = struct{}{}
	b := o.take(stateSpare)
	o.claims++
	return u.give(claim{kind: claimWrite, object: o, block: b}), uint32(b)
}

func (u *Session) commit(op *Op) (*queue, error) {
	c, err := u.claimOf(op)
	if err != nil {
		return nil, err
	}
	o := c.object
	op.object = o
	if o.removed && o.successor == nil {
		u.endClaim(op.Claim, c)
		return nil, fmt.Errorf("object %q: %w", o.name, wire.ErrRemoved)
	}
	if err := wire.CheckValues(o.columns, op.Values); err != nil {
		return nil, fmt.Errorf("object %q: entry %d: %w", o.name, o.next, err)
	}
	if o.removed {
		return u.commitToHeir(op, c)
	}
	if o.entries[c.block].state == stateSpare {
		if !o.hasRoom() {
			return &o.room, o.full()
		}
		delete(o.spareOf, u)
	}
	delete(u.claims, op.Claim)
	o.claims--
	copy(o.valuesOf(c.block), op.Values)
	op.Index = o.commit(c.block)
	if op.Next {
		op.Spare, op.SpareBlock = u.spare(o)
	}
	u.store.touch(o)
	return nil, nil
}

// claimOf returns the claim that a commit ends, also on a retry of a waiting commit.
func (u *Session) claimOf(op *Op) (claim, error) {
	if c, ok := u.claims[op.Claim]; ok && op.queue != nil {
		return c, nil
	}
	return u.find(op.Claim, claimWrite)
}

func (u *Session) abort(op *Op) error {
	c, err := u.find(op.Claim, claimWrite)
	if err != nil {
		return err
	}
	u.endClaim(op.Claim, c)
	return nil
}

func (u *Session) release(id uint64) error {
	c, err := u.find(id, claimRead)
	if err != nil {
		return err
	}
	u.endClaim(id, c)
	return nil
}

func (u *Session) read(op *Op, o *object) (*queue, error) {
	b, ok := o.at[op.Index]
	if !ok {
		err := o.noEntry(op.Index)
		if op.Index < o.next {
			return nil, err
		}
		return &o.reads, err
	}
	u.claimToRead(op, o, b)
	return nil, nil
}

func (u *Session) latest(op *Op, o *object) (*queue, error) {
	if o.last < 0 {
		return &o.reads, fmt.Errorf("object %q: %w", o.name, wire.ErrEmpty)
	}
	if newest := o.entries[o.last].index; newest < op.Index {
		return &o.reads, fmt.Errorf("object %q: %w of entries from %d on: the newest is %d", o.name, wire.ErrEmpty, op.Index, newest)
	}
	u.claimToRead(op, o, o.last)
	return nil, nil
}

func (u *Session) pop(op *Op, o *object) (*queue, error) {
	if o.first < 0 {
		return &o.pops, fmt.Errorf("object %q: %w", o.name, wire.ErrEmpty)
	}
	b := o.first
	u.claimToRead(op, o, b)
	o.withdraw(b)
	o.counters.Pops++
	if op.Lend && o.hasSpare() {
		op.Lent, o.entries[b].lent = true, true
		o.used--
		o.lent++
		u.store.touch(o)
	}
	return nil, nil
}

// claimToRead makes one claim on one entry, and its view.
func (u *Session) claimToRead(op *Op, o *object, b int32) {
	op.Claim = u.give(claim{kind: claimRead, object: o, block: b})
	op.Index = o.entries[b].index
	op.view(o, b)
}

// view counts one more reader of a block and adds its values to the operation. They are copied, because the session may
// end, and the block be reused, before they are read.
func (op *Op) view(o *object, b int32) {
	e := &o.entries[b]
	e.readers++
	o.claims++
	o.counters.Reads++
	from := len(op.values)
	op.values = append(op.values, o.valuesOf(b)...)
	op.Views = append(op.Views, wire.View{Index: e.index, Block: uint32(b), Torn: e.torn, Values: op.values[from:len(op.values):len(op.values)]})
}

func (u *Session) batch(op *Op, o *object) error {
	batch, err := o.blocksOf(op)
	if err != nil {
		return err
	}
	for _, b := range batch {
		op.view(o, b)
	}
	op.Claim = u.give(claim{kind: claimRead, object: o, batch: batch})
	return nil
}

// blocksOf returns the blocks of a batch.
func (o *object) blocksOf(op *Op) ([]int32, error) {
	if len(op.Indices) == 0 {
		return o.blocksFrom(op.Index, op.Most)
	}
	batch := make([]int32, len(op.Indices))
	for i, index := range op.Indices {
		b, ok := o.at[index]
		if !ok {
			return nil, o.noEntry(index)
		}
		batch[i] = b
	}
	return batch, nil
}

// blocksFrom returns the blocks of the oldest entries from an index on.
func (o *object) blocksFrom(index uint64, most int) ([]int32, error) {
	if most < 1 {
		return nil, fmt.Errorf("object %q: batch of %d entries: %w", o.name, most, wire.ErrRequest)
	}
	b, ok := o.at[index]
	if !ok {
		for b = o.first; b >= 0 && o.entries[b].index < index; {
			b = o.entries[b].next
		}
	}
	var batch []int32
	for ; b >= 0 && len(batch) < most; b = o.entries[b].next {
		batch = append(batch, b)
	}
	if batch == nil {
		return nil, fmt.Errorf("object %q: entries from %d on: %w", o.name, index, wire.ErrNoEntry)
	}
	return batch, nil
}

func (u *Session) remove(op *Op, o *object) error {
	b, ok := o.at[op.Index]
	if !ok {
		return o.noEntry(op.Index)
	}
	if n := o.entries[b].readers; n > 0 && !op.Revoke {
		return fmt.Errorf("object %q: entry %d: %w by %d", o.name, op.Index, wire.ErrBusy, n)
	}
	o.withdraw(b)
	o.counters.Deletes++
	u.store.touch(o)
	return nil
}

func (o *object) full() error {
	return fmt.Errorf("object %q: entry %d: %w: all %d entries are in use", o.name, o.next, wire.ErrFull, o.config.Capacity)
}

func (o *object) noEntry(index uint64) error {
	if index >= o.next {
		return fmt.Errorf("object %q: entry %d: %w yet: the next is %d", o.name, index, wire.ErrNoEntry, o.next)
	}
	return fmt.Errorf("object %q: entry %d: %w any more", o.name, index, wire.ErrNoEntry)
}

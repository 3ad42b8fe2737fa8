package objects

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// Writing is an entry to write in place. It ends in Commit or Abort.
type Writing struct {
	claimed
	block  uint32
	values []Value
}

// New takes a block in every track for arrays of these types and shapes, and waits for one if all are in use. Errors:
// ErrFull, ErrTracks, ErrDType, ErrTooLarge.
func (s *Store) New(ctx context.Context, name string, values ...Value) (*Writing, error) {
	reply, o, err := s.on(ctx, name, writeMapping, &wire.Request{Op: wire.OpNew})
	if err != nil {
		return nil, err
	}
	w := &Writing{claimed: claimed{store: s, object: o, claim: reply.Claim}, block: reply.Block, values: values}
	if err := o.check(values, reply.Block); err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return w, nil
}

// check returns why values do not fit the tracks, in the host's words.
func (o *remote) check(values []Value, block uint32) error {
	if err := wire.CheckValues(o.layout.Columns, values); err != nil {
		return fmt.Errorf("object %q: %w", o.name, err)
	}
	if int64(block) >= int64(o.layout.Blocks) {
		return fmt.Errorf("object %q: the host gave block %d of %d", o.name, block, o.layout.Blocks)
	}
	return nil
}

// Bytes returns the bytes of an array to write: shared memory, contents undefined at first, valid until Commit or
// Abort; nil after them.
func (w *Writing) Bytes(track int) []byte {
	if w.ended.Load() || track < 0 || track >= len(w.values) {
		return nil
	}
	n, _ := w.values[track].Size() // checked by check
	return w.object.block(w.object.write, track, w.block)[:n:n]
}

// Commit makes the entry readable and returns its index. After an error there is no entry, and the block is returned
// unwritten. Errors: ErrRemoved, and ErrSpent after Commit or Abort.
func (w *Writing) Commit(ctx context.Context) (uint64, error) {
	if err := w.end("writing"); err != nil {
		return 0, err
	}
	defer w.object.drop()
	reply, err := w.commit(ctx, 0)
	if err != nil {
		return 0, err
	}
	return reply.Index, nil
}

// commit ends the claim, by an entry or, where that fails, by giving the block back.
func (w *Writing) commit(ctx context.Context, flags wire.Flags) (*wire.Reply, error) {
	reply, err := w.store.call(ctx, &wire.Request{Op: wire.OpCommit, Flags: flags, Claim: w.claim, Values: w.values})
	if err != nil && !errors.Is(err, ErrRemoved) { // with the object the host has ended its claims
		w.store.post(&wire.Request{Op: wire.OpAbort, Flags: wire.OneWay, Claim: w.claim})
	}
	return reply, err
}

// Abort returns the block unwritten. It returns ErrSpent after Commit or Abort.
func (w *Writing) Abort() error {
	if err := w.end("writing"); err != nil {
		return err
	}
	w.give(wire.OpAbort)
	return nil
}

// push copies data into a new entry, in the spare block of the last push if there is one.
func (s *Store) push(ctx context.Context, name string, values []Value, data [][]byte) (uint64, error) {
	o, err := s.find(ctx, name, writeMapping)
	if err != nil {
		return 0, err
	}
	o.mu.Lock()
	claim, block := o.spare, o.spareAt
	o.spare = 0
	o.mu.Unlock()
	if claim == 0 {
		o.drop()
		return s.pushNew(ctx, name, values, data)
	}
	defer o.drop()
	if err := o.check(values, block); err != nil {
		s.keepSpare(o, claim, block)
		if s.moved(ctx, o, err) {
			return s.pushNew(ctx, name, values, data)
		}
		return 0, err
	}
	for track := range data {
		copy(o.block(o.write, track, block), data[track])
	}
	r := wire.Request{Op: wire.OpCommit, Flags: wire.Next, Claim: claim, Values: values}
	reply, err := s.call(ctx, &r)
	switch {
	case err == nil:
		s.keepSpare(o, reply.Spare, reply.SpareBlock)
		return reply.Index, nil
	case errors.Is(err, ErrRemoved):
		s.forget(o)
		return s.pushNew(ctx, name, values, data)
	}
	s.keepSpare(o, claim, block) // full, or cancelled: the session still owns the block
	return 0, err
}

// pushNew is push with a newly requested block.
func (s *Store) pushNew(ctx context.Context, name string, values []Value, data [][]byte) (uint64, error) {
	w, err := s.New(ctx, name, values...)
	if err != nil {
		return 0, err
	}
	for track := range data {
		copy(w.Bytes(track), data[track])
	}
	if err := w.end("writing"); err != nil {
		return 0, err
	}
	defer w.object.drop()
	reply, err := w.commit(ctx, wire.Next)
	if err != nil {
		return 0, err
	}
	s.keepSpare(w.object, reply.Spare, reply.SpareBlock)
	return reply.Index, nil
}

// keepSpare keeps a block for the next push.
func (s *Store) keepSpare(o *remote, claim uint64, block uint32) {
	o.mu.Lock()
	keep := o.spare == 0 && int64(block) < int64(o.layout.Blocks)
	if keep {
		o.spare, o.spareAt = claim, block
	}
	o.mu.Unlock()
	if !keep && claim != 0 {
		s.post(&wire.Request{Op: wire.OpAbort, Flags: wire.OneWay, Claim: claim})
	}
}

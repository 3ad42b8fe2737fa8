package objects

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// Entry is one entry of an object, held to read until Release. Its methods may be called from any goroutine; its
// views must not be used after Release.
type Entry struct {
	claimed
	view wire.View
	part bool // of a batch
	lock atomic.Pointer[Lock]
}

// claimed is the common part of an entry, a batch and a writing.
type claimed struct {
	store  *Store
	object *remote
	claim  uint64
	ended  atomic.Bool
}

// end ends the claim once.
func (c *claimed) end(what string) error {
	if !c.ended.CompareAndSwap(false, true) {
		return fmt.Errorf("object %q: %s: %w", c.object.name, what, ErrSpent)
	}
	return nil
}

// Read claims the entry of an index, and waits for a future one. Errors: ErrNoEntry.
func (s *Store) Read(ctx context.Context, name string, index uint64) (*Entry, error) {
	return s.entry(ctx, name, &wire.Request{Op: wire.OpRead, Index: index})
}

// ReadLatest claims the newest entry whose index is from or more, and waits for one if there is none: 0 takes any, the
// index after the last one seen only a newer one. Errors: ErrEmpty.
func (s *Store) ReadLatest(ctx context.Context, name string, from uint64) (*Entry, error) {
	return s.entry(ctx, name, &wire.Request{Op: wire.OpLatest, Index: from})
}

// Pop takes the oldest entry out of an object, and waits for one if there is none: each entry goes to one Pop. Other
// readers keep it until they release it. Errors: ErrEmpty.
func (s *Store) Pop(ctx context.Context, name string) (*Entry, error) {
	return s.entry(ctx, name, &wire.Request{Op: wire.OpPop})
}

func (s *Store) entry(ctx context.Context, name string, r *wire.Request) (*Entry, error) {
	b, err := s.claim(ctx, name, r)
	if err != nil {
		return nil, err
	}
	e := b.entries[0]
	e.part = false
	return e, nil
}

// Batch is several entries of one object, held to read as one.
type Batch struct {
	claimed
	entries []*Entry
}

// BatchRead claims the entries of all indices, or none and returns ErrNoEntry.
func (s *Store) BatchRead(ctx context.Context, name string, indices []uint64) (*Batch, error) {
	return s.claim(ctx, name, &wire.Request{Op: wire.OpBatch, Indices: indices})
}

// BatchRange claims the oldest entries from an index on, at most most and at most as many as fit into one reply.
// Errors: ErrNoEntry if there is none, wire.ErrRequest if most is less than 1.
func (s *Store) BatchRange(ctx context.Context, name string, from uint64, most int) (*Batch, error) {
	most = min(max(most, 0), math.MaxInt32) // the request has 32 bits for it
	return s.claim(ctx, name, &wire.Request{Op: wire.OpBatch, Flags: wire.Range, Index: from, Most: most})
}

// claim requests entries to read, after mapping the memory.
func (s *Store) claim(ctx context.Context, name string, r *wire.Request) (*Batch, error) {
	reply, o, err := s.on(ctx, name, readMapping, r)
	if err != nil {
		return nil, err
	}
	b := &Batch{claimed: claimed{store: s, object: o, claim: reply.Claim}}
	for _, view := range reply.Views {
		if !o.holds(&view) {
			_ = b.Release() // the next error matters more
			return nil, fmt.Errorf("object %q: the host tells of entry %d what cannot be", name, view.Index)
		}
		b.entries = append(b.entries, &Entry{claimed: claimed{store: s, object: o, claim: reply.Claim}, view: view, part: true})
	}
	if len(b.entries) == 0 {
		_ = b.Release() // as above
		return nil, fmt.Errorf("object %q: the host gave no entry", name)
	}
	return b, nil
}

// holds reports whether a view is within the object.
func (o *remote) holds(v *wire.View) bool {
	if len(v.Values) != len(o.layout.Columns) || int64(v.Block) >= int64(o.layout.Blocks) {
		return false
	}
	for i := range v.Values {
		if n, ok := v.Values[i].Size(); !ok || n > uint64(o.layout.Columns[i].Track.Bytes) {
			return false
		}
	}
	return true
}

// Len returns how many entries the batch has.
func (b *Batch) Len() int { return len(b.entries) }

// Entry returns one entry, which is released with the batch, not by itself.
func (b *Batch) Entry(i int) *Entry { return b.entries[i] }

// Release releases all entries. A second Release returns ErrSpent.
func (b *Batch) Release() error {
	if err := b.end("batch"); err != nil {
		return err
	}
	for _, e := range b.entries {
		e.ended.Store(true)
	}
	b.give(wire.OpRelease)
	return nil
}

// give tells the host that a claim has ended.
func (c *claimed) give(op wire.Op) {
	c.store.post(&wire.Request{Op: op, Flags: wire.OneWay, Claim: c.claim})
	c.object.drop()
}

// Index returns the entry's index.
func (e *Entry) Index() uint64 { return e.view.Index }

// Tracks returns the number of its arrays.
func (e *Entry) Tracks() int { return len(e.view.Values) }

// Value returns type and shape of an array.
func (e *Entry) Value(track int) Value { return e.view.Values[track] }

// Bytes returns the bytes of an array: shared memory, mapped read-only, valid until Release; nil after it.
func (e *Entry) Bytes(track int) []byte {
	if e.ended.Load() || track < 0 || track >= len(e.view.Values) {
		return nil
	}
	n, _ := e.view.Values[track].Size() // checked by holds
	return e.object.block(e.object.read, track, e.view.Block)[:n:n]
}

// Release releases the entry. It returns ErrSpent the second time, and for an entry of a batch.
func (e *Entry) Release() error {
	if e.part {
		return fmt.Errorf("object %q: entry %d: %w: it is released with its batch", e.object.name, e.view.Index, ErrSpent)
	}
	if err := e.end(fmt.Sprintf("entry %d", e.view.Index)); err != nil {
		return err
	}
	e.lock.Load().end() // the host ends it with the claim
	e.give(wire.OpRelease)
	return nil
}

package store

import (
	"fmt"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// Grow makes an object as Create does. Where there is one with smaller blocks or a smaller capacity, it makes a larger one in its place,
// half as large again at least, with its entries, their indices and its counters. That copies the entries, while other operations wait.
//
// Readers keep their entries of the former object, and its writers may still commit; operations that wait for its entries or for
// room end in ErrRemoved, to be asked for again. Errors: as of Create, ErrTracks, and ErrBusy while an entry is written in place.
func (s *Store) Grow(name string, c wire.Config) (uint32, error) {
	if err := check(&c, name); err != nil {
		return 0, err
	}
	s.making.Lock()
	defer s.making.Unlock()
	former, err := s.find(name)
	if err != nil {
		return 0, err
	}
	if former == nil {
		return s.create(name, c, false)
	}
	larger, err := former.enlarged(c)
	if err != nil || larger == nil {
		return former.id, err
	}
	o, err := s.newLarger(former, *larger)
	if err != nil {
		return 0, err
	}
	s.turn(func() { err = s.replace(former, o) })
	if err != nil {
		_ = o.seg.Close() // the first error matters
		return 0, err
	}
	return o.id, nil
}

// find returns the object of a name, nil if there is none.
func (s *Store) find(name string) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("object %q: store: %w", name, wire.ErrClosed)
	}
	return s.names[name], nil
}

// enlarged returns the configuration that has room for c's entries, nil if the object's own has.
func (o *object) enlarged(c wire.Config) (*wire.Config, error) {
	if len(c.Tracks) != len(o.columns) {
		return nil, fmt.Errorf("object %q: %w: %d asked for, it has %d", o.name, wire.ErrTracks, len(c.Tracks), len(o.columns))
	}
	larger := o.config
	larger.Tracks = nil
	same := c.Capacity <= o.config.Capacity
	larger.Capacity = max(c.Capacity, o.config.Capacity)
	for i, t := range o.config.Tracks {
		if want := c.Tracks[i].Bytes; want > t.Bytes {
			same = false
			t.Bytes = max(want, t.Bytes+t.Bytes/2)
		}
		larger.Tracks = append(larger.Tracks, t)
	}
	if same {
		return nil, nil
	}
	return &larger, check(&larger, o.name)
}

// newLarger makes the successor of an object, which has more blocks than its configuration says: one for each that is being written.
func (s *Store) newLarger(former *object, c wire.Config) (*object, error) {
	s.mu.Lock()
	extra := former.used - former.count
	s.mu.Unlock()
	columns, blocks, total, err := plan(&c, former.name, extra)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	err = s.fits(former.name, total)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	seg, err := s.limits.Segment("object "+shorten(former.name), total)
	if err != nil {
		return nil, fmt.Errorf("object %q: %w", former.name, err)
	}
	o, err := newObject(former.name, c, columns, blocks, seg)
	if err != nil {
		_ = seg.Close() // as above
		return nil, err
	}
	o.extra, o.origin = extra, former.origin
	return o, nil
}

// replace puts an object in the place of a smaller one. The caller holds the lock.
func (s *Store) replace(former, o *object) error {
	if s.names[o.name] != former {
		return fmt.Errorf("object %q: %w", o.name, wire.ErrRemoved)
	}
	for _, l := range former.locks {
		if l.alone {
			return fmt.Errorf("object %q: %w: an entry is written in place", o.name, wire.ErrBusy)
		}
	}
	for b := former.first; b >= 0; b = former.entries[b].next {
		o.next = former.entries[b].index
		into := o.take(stateWrite)
		o.inherit(into, former, b)
		o.commit(into)
		o.entries[into].torn = former.entries[b].torn
	}
	o.next, o.counters = former.next, former.counters
	former.successor = o
	commits := former.takeCommits()
	s.remove(former)
	if err := s.add(o); err != nil {
		return err
	}
	for _, op := range commits {
		op.object = o
		o.room.push(op)
	}
	s.touch(o)
	s.touch(former) // who waits for a lock there learns that it has grown
	return nil
}

// takeCommits takes the commits that wait for room out of their queue.
func (o *object) takeCommits() []*Op {
	var commits []*Op
	for op := o.room.head; op != nil; {
		next := op.next
		if op.Kind == OpCommit {
			o.room.remove(op)
			commits = append(commits, op)
		}
		op = next
	}
	return commits
}

// inherit copies what a block of another object holds, with its values.
func (o *object) inherit(into int32, from *object, b int32) {
	copy(o.valuesOf(into), from.valuesOf(b))
	for i := range o.columns {
		to, at := &o.columns[i], &from.columns[i]
		size, _ := o.valuesOf(into)[i].Size() // checked when it was committed
		source := from.seg.Bytes()[at.At+int(b)*at.Stride:]
		copy(o.seg.Bytes()[to.At+int(into)*to.Stride:], source[:min(int(size), at.Track.Bytes)])
	}
}

// heir returns the object that has an object's entries now: itself, unless it has grown.
func (o *object) heir() *object {
	for o.successor != nil {
		o = o.successor
	}
	return o
}

// commitToHeir makes an entry of a block that was written in an object that has grown since.
func (u *Session) commitToHeir(op *Op, c claim) (*queue, error) {
	o := c.object.heir()
	op.object = o
	if o.removed {
		u.endClaim(op.Claim, c)
		return nil, fmt.Errorf("object %q: %w", o.name, wire.ErrRemoved)
	}
	promised := c.object.entries[c.block].state == stateWrite && o.used < o.config.Capacity+o.extra
	if !promised && !o.hasRoom() {
		return &o.room, o.full()
	}
	into := o.take(stateWrite)
	copy(c.object.valuesOf(c.block), op.Values)
	o.inherit(into, c.object, c.block)
	op.Index = o.commit(into)
	u.endClaim(op.Claim, c)
	u.store.touch(o)
	return nil, nil
}

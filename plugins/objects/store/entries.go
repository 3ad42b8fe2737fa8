package store

import (
	"fmt"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
)

// state is the state of a block.
type state uint8

const (
	stateFree   state = iota // without an owner
	stateSpare               // a session's, to write; not counted in used
	stateWrite               // a session's, to write
	stateLive                // committed, in the list
	stateZombie              // out of the list, kept for its readers
)

// entry is the store's record of one block. Fields after state are valid only in states that use them.
type entry struct {
	state   state
	lent    bool   // counts as a spare block; of zombies
	torn    bool   // its writer in place did not finish; live and zombie
	readers int32  // claims to read
	next    int32  // in the list, by index; -1 at its end
	prev    int32  // in the list; -1 at its beginning
	index   uint64 // live and zombie
}

// object is one named object. The store's lock guards all fields but the ones that newObject sets for good.
type object struct {
	id      uint32
	origin  uint32 // the number before it grew for the first time
	name    string
	config  wire.Config
	columns []wire.Column
	seg     *shm.Segment // nil once released

	successor *object // that has its entries now
	extra     int     // blocks beyond the configuration's, for entries that were written before it grew
	locks     map[int32]*lock
	removed   bool
	touched   bool // in Store.touched
	claims    int  // of all kinds, each block of a batch counted
	used      int  // blocks in states write, live, zombie, without lent ones
	spares    int  // blocks in state spare
	lent      int  // blocks that are lent
	count     int  // entries in the list
	next      uint64
	entries   []entry
	values    []wire.Value // of block b: values[b*tracks : (b+1)*tracks]
	free      []int32      // a stack: the last freed block is still in the caches
	at        map[uint64]int32
	first     int32
	last      int32
	spareOf   map[*Session]struct{}
	room      queue // operations that wait for a block
	pops      queue // that wait for an entry to take
	reads     queue // that wait for an entry to read
	counters  wire.Counters
}

func newObject(name string, c wire.Config, columns []wire.Column, blocks int, seg *shm.Segment) (*object, error) {
	total := columns[len(columns)-1].At + columns[len(columns)-1].Stride*blocks
	if seg.Size() < total {
		return nil, fmt.Errorf("object %q: segment of %d bytes, want %d", name, seg.Size(), total)
	}
	o := &object{
		name: name, config: c, columns: columns, seg: seg, first: -1, last: -1,
		entries: make([]entry, blocks), values: make([]wire.Value, blocks*len(columns)), free: make([]int32, blocks),
		at: map[uint64]int32{}, spareOf: map[*Session]struct{}{},
	}
	for i := range o.free {
		o.free[i] = int32(blocks - 1 - i)
	}
	return o, nil
}

// reused decides what Create does with an object that exists.
func (o *object) reused(c wire.Config, reuse bool, err error) (uint32, error) {
	if err != nil {
		return 0, err
	}
	if !reuse {
		return 0, fmt.Errorf("object %q: %w", o.name, wire.ErrExists)
	}
	if len(c.Tracks) != len(o.columns) {
		return 0, fmt.Errorf("object %q: %w: %d asked for, it has %d", o.name, wire.ErrTracks, len(c.Tracks), len(o.columns))
	}
	for i, t := range c.Tracks {
		have := o.columns[i].Track
		if t.Bytes > have.Bytes {
			return 0, fmt.Errorf("object %q: track %d: %d bytes asked for: %w of %d bytes", o.name, i, t.Bytes, wire.ErrTooLarge, have.Bytes)
		}
		if t.DType != wire.AnyDType && have.DType != wire.AnyDType && t.DType != have.DType {
			return 0, fmt.Errorf("object %q: track %d: %s asked for: %w: it has %s", o.name, i, t.DType, wire.ErrDType, have.DType)
		}
	}
	return o.id, nil
}

// hasRoom reports whether a block may be taken into use. There are Capacity+spares blocks, and at most spares of them
// are spare or lent, so there is a free block then, or the caller's block is a spare itself.
func (o *object) hasRoom() bool { return o.used < o.config.Capacity }

// hasSpare reports whether another block may become a spare, or lent.
func (o *object) hasSpare() bool { return o.spares+o.lent < sparesOf(&o.config) }

// take moves a free block to state write or spare, and returns it.
func (o *object) take(to state) int32 {
	b := o.free[len(o.free)-1]
	o.free = o.free[:len(o.free)-1]
	o.entries[b].state = to
	if to == stateSpare {
		o.spares++
	} else {
		o.used++
	}
	return b
}

// drop frees a block without claims.
func (o *object) drop(b int32) {
	switch e := &o.entries[b]; {
	case e.state == stateSpare:
		o.spares--
	case e.lent:
		o.lent--
	default:
		o.used--
	}
	o.entries[b] = entry{}
	o.free = append(o.free, b)
}

// commit puts a written block at the end of the list.
func (o *object) commit(b int32) uint64 {
	e := &o.entries[b]
	if e.state == stateSpare {
		o.spares--
		o.used++
	}
	*e = entry{state: stateLive, index: o.next, prev: o.last, next: -1}
	if o.last >= 0 {
		o.entries[o.last].next = b
	} else {
		o.first = b
	}
	o.last = b
	o.at[o.next] = b
	o.next++
	o.count++
	o.counters.Commits++
	return e.index
}

// withdraw takes an entry out of the list; without readers its block becomes free.
func (o *object) withdraw(b int32) {
	e := &o.entries[b]
	if e.prev >= 0 {
		o.entries[e.prev].next = e.next
	} else {
		o.first = e.next
	}
	if e.next >= 0 {
		o.entries[e.next].prev = e.prev
	} else {
		o.last = e.prev
	}
	delete(o.at, e.index)
	o.count--
	e.state = stateZombie
	if e.readers == 0 {
		o.drop(b)
	}
}

// release ends one claim to read; it tells whether the block became free.
func (o *object) release(b int32) bool {
	e := &o.entries[b]
	e.readers--
	o.claims--
	if e.readers > 0 || e.state == stateLive {
		return false
	}
	o.drop(b)
	return true
}

// valuesOf returns the values in a block, to be overwritten by its next writer.
func (o *object) valuesOf(b int32) []wire.Value {
	n := len(o.columns)
	return o.values[int(b)*n : int(b)*n+n]
}

package store

import (
	"fmt"
	"os"
	"strconv"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// Stat returns the state of an object. It is linear in the object's blocks.
func (s *Store) Stat(id uint32) (wire.Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[id]
	if o == nil {
		return wire.Stat{}, s.absent(id)
	}
	t := wire.Stat{
		ID: o.id, Origin: o.origin, Name: o.name, Config: o.config, Entries: o.count, Spares: o.spares, Lent: o.lent, Claims: o.claims,
		Waiting: o.room.length + o.pops.length + o.reads.length,
		Next:    o.next, Bytes: o.seg.Size(), Counters: o.counters,
	}
	if o.first >= 0 {
		t.Oldest, t.Newest = o.entries[o.first].index, o.entries[o.last].index
	}
	for _, l := range o.locks {
		t.Waiting += l.waiting.length
	}
	for i := range o.entries {
		switch o.entries[i].state {
		case stateWrite:
			t.Writing++
		case stateZombie:
			t.Kept++
		}
	}
	return t, nil
}

// Layout returns the layout of an object.
func (s *Store) Layout(id uint32) (wire.Layout, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[id]
	if o == nil {
		return wire.Layout{}, s.absent(id)
	}
	return wire.Layout{Capacity: o.config.Capacity, Blocks: len(o.entries), Size: o.seg.Size(), Columns: o.columns}, nil
}

// File opens an object's memory again, for another process: to read and write, or only to read. The caller closes it.
func (s *Store) File(id uint32, write bool) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[id]
	if o == nil {
		return nil, s.absent(id)
	}
	if o.seg.FD() < 0 {
		return nil, fmt.Errorf("object %q: its memory has no file", o.name)
	}
	flags := os.O_RDONLY
	if write {
		flags = os.O_RDWR
	}
	f, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(o.seg.FD()), flags, 0)
	if err != nil {
		return nil, fmt.Errorf("object %q: %w", o.name, err)
	}
	return f, nil
}

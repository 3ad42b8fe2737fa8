package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
)

// Limits bounds a store; zero fields take the default.
type Limits struct {
	Objects int // objects at a time; default 4096
	Bytes   int // of all objects together; default: the system's free memory when an object is made
	Claims  int // open claims of one session; default 65536
	Waiting int // waiting operations of one session; default 64

	// Segment makes the memory of one object, which then belongs to the store. nil means shm.Create.
	Segment func(name string, bytes int) (*shm.Segment, error)
}

func (l Limits) withDefaults() Limits {
	l.Objects = cmp.Or(l.Objects, 4096)
	l.Claims = cmp.Or(l.Claims, 1<<16)
	l.Waiting = cmp.Or(l.Waiting, 64)
	if l.Segment == nil {
		l.Segment = shm.Create
	}
	return l
}

// Store holds objects and sessions.
type Store struct {
	limits Limits

	making sync.Mutex // one object is made at a time; taken before mu

	mu        sync.Mutex
	closed    bool
	objects   map[uint32]*object
	names     map[string]*object
	sessions  map[uint64]*Session
	opens     queue // operations that wait for an object to be made
	finished  *Op   // operations whose Done is called after the unlock, the first to finish first
	lastEnded **Op  // link for the next of them
	bytes     int   // of all segments
	lastID    uint32
	lastClaim uint64
	lastUser  uint64
	touched   []*object      // in this turn: their waiting operations are tried at its end
	segments  []*shm.Segment // of objects that ended in this turn
}

// NewStore returns an empty store.
func NewStore(l Limits) *Store {
	return &Store{
		limits: l.withDefaults(), objects: map[uint32]*object{}, names: map[string]*object{}, sessions: map[uint64]*Session{},
	}
}

// turn runs fn under the lock, then calls Done of the finished operations and frees memory.
func (s *Store) turn(fn func()) {
	s.mu.Lock()
	fn()
	for len(s.touched) > 0 {
		o := s.touched[len(s.touched)-1]
		s.touched = s.touched[:len(s.touched)-1]
		o.touched = false
		s.serve(o)
	}
	finished, segments := s.finished, s.segments
	s.finished, s.lastEnded, s.segments = nil, nil, nil
	s.mu.Unlock()
	for op := finished; op != nil; {
		next := op.ended // after Done the caller may reuse the operation
		op.ended = nil
		op.Done(op)
		op = next
	}
	for _, seg := range segments {
		_ = seg.Close() // the last mapping frees the pages; a failure can no longer be reported
	}
}

// Create makes an object, with all its memory in place; that takes about 0.5 s a GiB, without blocking other
// operations. If an object of that name exists it returns ErrExists, or with reuse the object's number, if it has as
// many tracks and its blocks are no smaller. Other errors: ErrLimit, ErrDType, ErrClosed, and the errors of
// shm.Create.
func (s *Store) Create(name string, c wire.Config, reuse bool) (uint32, error) {
	if err := check(&c, name); err != nil {
		return 0, err
	}
	s.making.Lock()
	defer s.making.Unlock()
	return s.create(name, c, reuse)
}

// create is Create of a checked configuration, with making held.
func (s *Store) create(name string, c wire.Config, reuse bool) (uint32, error) {
	columns, blocks, total, err := plan(&c, name, 0)
	if err != nil {
		return 0, err
	}
	if o, err := s.room(name, total); err != nil || o != nil {
		return o.reused(c, reuse, err)
	}
	seg, err := s.limits.Segment("object "+shorten(name), total)
	if err != nil {
		return 0, fmt.Errorf("object %q: %w", name, err)
	}
	o, err := newObject(name, c, columns, blocks, seg)
	if err == nil {
		s.turn(func() { err = s.add(o) })
	}
	if err != nil {
		_ = seg.Close() // the first error matters
		return 0, err
	}
	return o.id, nil
}

// room returns the object of that name, or an error if there is no room for another of total bytes.
func (s *Store) room(name string, total int) (*object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := s.names[name]; {
	case s.closed:
		return nil, fmt.Errorf("object %q: store: %w", name, wire.ErrClosed)
	case o != nil:
		return o, nil
	case len(s.objects) >= s.limits.Objects:
		return nil, fmt.Errorf("object %q: %w: the store has %d objects", name, wire.ErrLimit, len(s.objects))
	}
	return nil, s.fits(name, total)
}

// fits returns an error if the store has no total bytes left. The caller holds the lock.
func (s *Store) fits(name string, total int) error {
	if s.limits.Bytes > 0 && total > s.limits.Bytes-s.bytes {
		return fmt.Errorf("object %q of %d bytes: %w: the store holds %d of %d bytes", name, total, wire.ErrLimit, s.bytes, s.limits.Bytes)
	}
	return nil
}

// add publishes a new object. The caller holds the lock.
func (s *Store) add(o *object) error {
	if s.closed {
		return fmt.Errorf("object %q: store: %w", o.name, wire.ErrClosed)
	}
	s.lastID++
	o.id = s.lastID
	o.origin = cmp.Or(o.origin, o.id)
	s.objects[o.id], s.names[o.name] = o, o
	s.bytes += o.seg.Size()
	for op := s.opens.head; op != nil; {
		next := op.next
		if op.Name == o.name {
			s.opens.remove(op)
			op.Object = o.id
			s.finish(op, nil)
		}
		op = next
	}
	return nil
}

// Remove removes an object for all users: its name is free at once, waiting operations and commits fail with
// ErrRemoved. Its readers keep their entries; the last claim frees the memory.
func (s *Store) Remove(id uint32) error {
	var err error
	s.turn(func() {
		o := s.objects[id]
		if o == nil {
			err = s.absent(id)
			return
		}
		s.remove(o)
	})
	return err
}

// remove is Remove with the lock held.
func (s *Store) remove(o *object) {
	delete(s.objects, o.id)
	delete(s.names, o.name)
	o.removed = true
	for _, q := range []*queue{&o.room, &o.pops, &o.reads} {
		for op := q.pop(); op != nil; op = q.pop() {
			s.finish(op, fmt.Errorf("object %q: %w", o.name, wire.ErrRemoved))
			if c, ok := op.session.claims[op.Claim]; ok && op.Kind == OpCommit {
				op.session.endClaim(op.Claim, c)
			}
		}
	}
	for o.first >= 0 {
		o.withdraw(o.first)
	}
	s.endIfUnused(o)
}

// endIfUnused frees the memory of a removed object without claims. The caller holds the lock.
func (s *Store) endIfUnused(o *object) {
	if !o.removed || o.claims > 0 || o.seg == nil {
		return
	}
	s.bytes -= o.seg.Size()
	s.segments = append(s.segments, o.seg)
	o.seg = nil
}

// absent returns why there is no object of that number.
func (s *Store) absent(id uint32) error {
	if id > 0 && id <= s.lastID {
		return fmt.Errorf("object %d: %w", id, wire.ErrRemoved)
	}
	return fmt.Errorf("object %d: %w", id, wire.ErrNotFound)
}

// Names returns up to limit names that begin with prefix and follow after, in order.
func (s *Store) Names(prefix, after string, limit int) []string {
	names := s.matching(prefix, after)
	slices.Sort(names)
	return names[:max(0, min(limit, len(names)))]
}

func (s *Store) matching(prefix, after string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.names {
		if strings.HasPrefix(name, prefix) && name > after {
			names = append(names, name)
		}
	}
	return names
}

// Close ends all sessions and removes all objects. Other mappings of their memory stay valid.
// A second Close returns ErrClosed.
func (s *Store) Close() error {
	var err error
	s.turn(func() {
		if s.closed {
			err = fmt.Errorf("store: %w", wire.ErrClosed)
			return
		}
		s.closed = true
		for op := s.opens.pop(); op != nil; op = s.opens.pop() {
			s.finish(op, fmt.Errorf("object %q: store: %w", op.Name, wire.ErrClosed))
		}
		for _, o := range s.objects {
			s.remove(o)
		}
		for _, user := range s.sessions {
			err = errors.Join(err, user.end())
		}
	})
	return err
}

// shorten cuts a name to the length of a segment's.
func shorten(name string) string { return name[:min(len(name), 200)] }

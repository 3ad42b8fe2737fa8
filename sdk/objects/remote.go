package objects

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
)

// mapping is the view of an object's memory that an operation needs before its request.
type mapping uint8

const (
	noMapping mapping = iota
	readMapping
	writeMapping
)

// remote is an object as this process sees it.
type remote struct {
	name   string
	id     uint32
	layout wire.Layout

	mu      sync.Mutex
	read    *shm.Segment // nil until the first read
	write   *shm.Segment // nil until the first write
	held    int          // entries and writings in use
	gone    bool         // unmap when held is 0
	spare   uint64       // claim on the block for the next push
	spareAt uint32       // its index
}

// table holds the objects used so far.
type table struct {
	mu     sync.Mutex
	byName map[string]*remote
}

func (t *table) get(name string) *remote {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byName[name]
}

// keep returns the object of a name after a reply with its number and layout.
func (t *table) keep(name string, reply *wire.Reply) *remote {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.byName[name]; o != nil && o.id == reply.Object {
		return o
	}
	o := &remote{name: name, id: reply.Object, layout: reply.Layout}
	if t.byName != nil {
		t.byName[name] = o
	}
	return o
}

func (t *table) forget(o *remote) {
	t.mu.Lock()
	if t.byName[o.name] == o {
		delete(t.byName, o.name)
	}
	t.mu.Unlock()
	_ = o.retire() // only an address range is lost
}

func (t *table) clear() error {
	t.mu.Lock()
	all := t.byName
	t.byName = nil
	t.mu.Unlock()
	var err error
	for _, o := range all {
		err = errors.Join(err, o.retire())
	}
	return err
}

// retire unmaps the object once it has no uses.
func (o *remote) retire() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.gone = true
	return o.unmapIfUnused()
}

// drop ends one use of the memory.
func (o *remote) drop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held--
	_ = o.unmapIfUnused() // as in forget
}

func (o *remote) unmapIfUnused() error {
	if !o.gone || o.held > 0 {
		return nil
	}
	var err error
	for _, seg := range []**shm.Segment{&o.read, &o.write} {
		if *seg != nil {
			err = errors.Join(err, (*seg).Close())
			*seg = nil
		}
	}
	return err
}

// tries is how often a request is made again of an object that was removed and made again, or has grown.
const tries = 15

// forget forgets an object, and the block that its next push would have used: that would keep the object's memory.
func (s *Store) forget(o *remote) {
	o.mu.Lock()
	spare := o.spare
	o.spare = 0
	o.mu.Unlock()
	if spare != 0 {
		s.post(&wire.Request{Op: wire.OpAbort, Flags: wire.OneWay, Claim: spare})
	}
	s.objects.forget(o)
}

// moved reports whether what has not fit an object may fit the larger one that is in its place now.
func (s *Store) moved(ctx context.Context, o *remote, err error) bool {
	if !errors.Is(err, ErrTooLarge) {
		return false
	}
	reply, err := s.call(NoWait(ctx), &wire.Request{Op: wire.OpOpen, Flags: wire.NoFile, Name: o.name})
	if err != nil || reply.Object == o.id {
		return false
	}
	s.forget(o)
	return true
}

// on makes a request on the object of a name, which it looks up, maps and, if it was removed and created again, looks
// up again. With a mapping the object is held: the caller drops it, unless there was an error.
func (s *Store) on(ctx context.Context, name string, need mapping, r *wire.Request) (*wire.Reply, *remote, error) {
	for try := 0; ; try++ {
		o, err := s.find(ctx, name, need)
		if err != nil {
			return nil, nil, err
		}
		r.Object = o.id
		reply, err := s.call(ctx, r)
		if err == nil {
			return reply, o, nil
		}
		if need != noMapping {
			o.drop()
		}
		if !errors.Is(err, ErrRemoved) {
			return nil, nil, err
		}
		s.forget(o)
		if try > tries {
			return nil, nil, err
		}
		if again, lookErr := s.find(ctx, name, noMapping); lookErr != nil || again.id == o.id {
			return nil, nil, err
		}
	}
}

// find returns the object of a name; with a mapping, mapped and held.
func (s *Store) find(ctx context.Context, name string, need mapping) (*remote, error) {
	o := s.objects.get(name)
	if o == nil {
		reply, err := s.call(NoWait(ctx), &wire.Request{Op: wire.OpOpen, Flags: wire.NoFile, Name: name})
		if err != nil {
			return nil, err
		}
		o = s.objects.keep(name, reply)
	}
	if need == noMapping {
		return o, nil
	}
	if err := s.hold(ctx, o, need); err != nil {
		return nil, err
	}
	return o, nil
}

// hold maps an object if needed, and counts one more use of its memory.
func (s *Store) hold(ctx context.Context, o *remote, need mapping) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.gone {
		return fmt.Errorf("object %q: %w", o.name, ErrRemoved)
	}
	seg, access, flags := &o.read, shm.ReadOnly, wire.Flags(0)
	if need == writeMapping {
		seg, access, flags = &o.write, shm.ReadWrite, wire.Write
	}
	if *seg == nil {
		opened, err := s.open(ctx, o, access, flags)
		if err != nil {
			return err
		}
		*seg = opened
	}
	o.held++
	return nil
}

// open requests an object's memory and maps it.
func (s *Store) open(ctx context.Context, o *remote, access shm.Access, flags wire.Flags) (*shm.Segment, error) {
	p, err := s.exchange(NoWait(ctx), &wire.Request{Op: wire.OpOpen, Flags: flags, Name: o.name})
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range p.files {
			_ = f.Close() // the mapping has its own
		}
	}()
	if p.reply.Object != o.id {
		return nil, fmt.Errorf("object %q: %w", o.name, ErrRemoved)
	}
	if len(p.files) != 1 {
		return nil, fmt.Errorf("object %q: %d files came with it", o.name, len(p.files))
	}
	fd, err := dup(p.files[0])
	if err != nil {
		return nil, fmt.Errorf("object %q: %w", o.name, err)
	}
	seg, err := shm.Open(fd, access)
	if err != nil {
		return nil, fmt.Errorf("object %q: %w", o.name, err)
	}
	if !fits(&o.layout, seg.Size()) {
		return nil, errors.Join(fmt.Errorf("object %q: its layout does not fit its %d bytes", o.name, seg.Size()), seg.Close())
	}
	return seg, nil
}

// fits reports whether every block of a layout is within size bytes.
func fits(l *wire.Layout, size int) bool {
	if l.Blocks < 1 || len(l.Columns) < 1 {
		return false
	}
	for _, c := range l.Columns {
		if c.At < 0 || c.At > size || c.Track.Bytes < 1 || c.Stride < c.Track.Bytes || c.Stride > (size-c.At)/l.Blocks {
			return false
		}
	}
	return true
}

// block returns a block's memory in one of the mappings, or nil if there is no such block.
func (o *remote) block(seg *shm.Segment, track int, block uint32) []byte {
	if track < 0 || track >= len(o.layout.Columns) || int64(block) >= int64(o.layout.Blocks) {
		return nil
	}
	c := o.layout.Columns[track]
	at := c.At + int(block)*c.Stride
	return seg.Bytes()[at : at+c.Track.Bytes : at+c.Track.Bytes]
}

package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
)

type (
	// Config is the configuration of an object; see core/objects/wire, as for the others.
	Config = wire.Config
	// Track is one of its tracks.
	Track = wire.Track
	// Value is one of its values.
	Value = wire.Value
	// DType is the type of elements.
	DType = wire.DType
	// Stat is the state of an object.
	Stat = wire.Stat
)

// Errors that callers decide on; see core/objects/wire.
var (
	ErrNotFound = wire.ErrNotFound
	ErrExists   = wire.ErrExists
	ErrRemoved  = wire.ErrRemoved
	ErrNoEntry  = wire.ErrNoEntry
	ErrEmpty    = wire.ErrEmpty
	ErrFull     = wire.ErrFull
	ErrBusy     = wire.ErrBusy
	ErrLocked   = wire.ErrLocked
	ErrSpent    = wire.ErrSpent
	ErrTooLarge = wire.ErrTooLarge
	ErrTracks   = wire.ErrTracks
	ErrDType    = wire.ErrDType
	ErrLimit    = wire.ErrLimit

	// ErrLost: the host is gone, or has closed the connection.
	ErrLost = errors.New("the host is lost")
	// ErrClosed: the store has been closed.
	ErrClosed = errors.New("the store has been closed")
)

// Store is a connection to the objects that a host serves, and its session.
type Store struct {
	connection
	objects table
}

// Dial connects to the host that serves at a path, or at the default one if path is empty: $RLHOST_OBJECTS, or one in a
// folder of the user's own. It does not wait for a host to appear. The store must be closed. Errors: ErrLost if no host
// serves there.
func Dial(ctx context.Context, path string) (*Store, error) {
	path = cmp.Or(path, wire.DefaultPath())
	socket, err := shm.Dial(path)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w: %w", path, ErrLost, err)
	}
	s := &Store{}
	s.connection.init(path, socket)
	s.objects.byName = map[string]*remote{}
	s.over.Go(s.receive)
	hello := wire.Request{Op: wire.OpHello, Index: wire.Version, Name: fmt.Sprintf("pid %d", os.Getpid())}
	if _, err := s.call(ctx, &hello); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Close ends the session: it releases all claims and unmaps memory, at once or, where an Entry or Writing is still
// held, on its release. A second Close returns ErrClosed.
func (s *Store) Close() error {
	if !s.end() {
		return ErrClosed
	}
	return s.objects.clear()
}

// RoundTrips returns how many requests have been answered.
func (s *Store) RoundTrips() uint64 { return s.roundTrips.Load() }

// NoWait returns a context with which operations do not wait: they return an error instead.
func NoWait(ctx context.Context) context.Context { return context.WithValue(ctx, noWait{}, true) }

type noWait struct{}

// Create makes an object with all its memory. Errors: ErrExists, ErrLimit, ErrDType.
func (s *Store) Create(ctx context.Context, name string, c Config) error {
	_, err := s.call(NoWait(ctx), &wire.Request{Op: wire.OpCreate, Name: name, Config: c})
	return err
}

// Ensure is Create, but an existing object of that name will do if it has as many tracks and blocks no smaller.
func (s *Store) Ensure(ctx context.Context, name string, c Config) error {
	_, err := s.call(NoWait(ctx), &wire.Request{Op: wire.OpCreate, Flags: wire.Reuse, Name: name, Config: c})
	return err
}

// Grow is Ensure, but an object whose blocks or capacity are smaller becomes larger, by the host's copy of its entries. What
// is held of it stays as it is. Errors: also wire.ErrBusy while an entry is written in place.
func (s *Store) Grow(ctx context.Context, name string, c Config) error {
	_, err := s.call(NoWait(ctx), &wire.Request{Op: wire.OpCreate, Flags: wire.Grow, Name: name, Config: c})
	return err
}

// WaitFor waits until there is an object of that name. ErrNotFound when ctx ends first.
func (s *Store) WaitFor(ctx context.Context, name string) error {
	_, err := s.call(ctx, &wire.Request{Op: wire.OpOpen, Flags: wire.NoFile, Name: name})
	return err
}

// Remove removes an object for all processes. Its readers keep their entries.
func (s *Store) Remove(ctx context.Context, name string) error {
	_, _, err := s.on(NoWait(ctx), name, noMapping, &wire.Request{Op: wire.OpRemove})
	return err
}

// Names returns the names that begin with prefix, in order.
func (s *Store) Names(ctx context.Context, prefix string) ([]string, error) {
	var names []string
	request := wire.Request{Op: wire.OpList, Name: prefix}
	for {
		reply, err := s.call(ctx, &request)
		if err != nil {
			return nil, err
		}
		if len(reply.Names) == 0 {
			return names, nil
		}
		names = append(names, reply.Names...)
		request.After = names[len(names)-1]
	}
}

// Stat returns the state of an object.
func (s *Store) Stat(ctx context.Context, name string) (Stat, error) {
	reply, _, err := s.on(ctx, name, noMapping, &wire.Request{Op: wire.OpStat})
	if err != nil {
		return Stat{}, err
	}
	var stat Stat
	if err := json.Unmarshal([]byte(reply.Text), &stat); err != nil {
		return Stat{}, fmt.Errorf("object %q: stat: %w", name, err)
	}
	return stat, nil
}

// Delete removes an entry from an object. Errors: ErrNoEntry, and ErrBusy while it is read; with revoke its readers
// keep it until they release it, and there are no new ones.
func (s *Store) Delete(ctx context.Context, name string, index uint64, revoke bool) error {
	request := wire.Request{Op: wire.OpDelete, Index: index}
	if revoke {
		request.Flags = wire.Revoke
	}
	_, _, err := s.on(ctx, name, noMapping, &request)
	return err
}

package arena

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/hostabi"
)

// firstID leaves arena 0 empty, so that small numbers are never valid handles.
const firstID = 1

// Set finds arenas by the ID in a handle. Looking up takes no lock.
type Set struct {
	arenas [hostabi.MaxArena + 1]atomic.Pointer[Arena]

	mu   sync.Mutex                   // adding and removing
	last int                          // guarded by mu: ID given last
	next [hostabi.MaxArena + 1]uint64 // guarded by mu: first generation of the next arena of each ID
}

// NewSet returns a set without arenas.
func NewSet() *Set { return &Set{} }

// Add makes an arena under an ID of the set's own choice; there are 255.
func (s *Set) Add(c Config) (*Arena, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, ok := s.freeID()
	if !ok {
		return nil, fmt.Errorf("arena %q: all %d arena IDs are taken", c.Name, hostabi.MaxArena)
	}
	c.ID = uint8(id)
	a, err := newArena(c, max(s.next[id], 1))
	if err != nil {
		return nil, err
	}
	s.last = id
	s.arenas[id].Store(a)
	return a, nil
}

// freeID returns the ID that has been unused for longest.
func (s *Set) freeID() (int, bool) {
	for k := range hostabi.MaxArena {
		id := firstID + (s.last-firstID+1+k)%hostabi.MaxArena
		if s.arenas[id].Load() == nil {
			return id, true
		}
	}
	return 0, false
}

// Of returns the arena that h belongs to, or ErrForeign.
func (s *Set) Of(h hostabi.Handle) (*Arena, error) {
	if a := s.arenas[h.Arena()].Load(); a != nil {
		return a, nil
	}
	return nil, ErrForeign
}

// Lease is Arena.Lease in the arena that h belongs to.
func (s *Set) Lease(h hostabi.Handle) (Lease, error) {
	a, err := s.Of(h)
	if err != nil {
		return Lease{}, err
	}
	return a.Lease(h)
}

// Retain is Arena.Retain in the arena that h belongs to.
func (s *Set) Retain(h hostabi.Handle) error {
	a, err := s.Of(h)
	if err != nil {
		return err
	}
	return a.Retain(h)
}

// Release is Arena.Release in the arena that h belongs to.
func (s *Set) Release(h hostabi.Handle) error {
	a, err := s.Of(h)
	if err != nil {
		return err
	}
	return a.Release(h)
}

// Remove closes an arena of the set and gives up its ID. A later arena of that ID rejects all handles of this
// one. With claims out it returns ErrOpen, and the arena stays.
func (s *Set) Remove(id uint8) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.arenas[id].Load()
	if a == nil {
		return fmt.Errorf("remove arena %d: %w", id, ErrForeign)
	}
	if err := a.Close(); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	s.next[id] = a.unusedGeneration()
	s.arenas[id].Store(nil)
	return nil
}

// Close removes all arenas. Those with claims out stay, and their errors are returned together; call it again
// later.
func (s *Set) Close() error {
	var errs []error
	for id := range s.arenas {
		if s.arenas[id].Load() != nil {
			errs = append(errs, s.Remove(uint8(id)))
		}
	}
	return errors.Join(errs...)
}

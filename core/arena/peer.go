package arena

import (
	"errors"
	"fmt"
	"time"
)

// announceWait is how long Of waits for an arena that has not been announced yet.
const announceWait = 2 * time.Second

// peer is the additional state of a set outside the host.
type peer struct {
	holder   int
	add      func(Config) (*Arena, error)
	patience time.Duration
	arrived  chan struct{} // guarded by Set.mu: closed and replaced when an arena arrives
}

// NewPeerSet returns the set of a process that the host knows by that holder number, 1 to 23. Its arenas come from
// Attach. add asks the host for one and returns it attached, by Set.Attach or Attach; nil means that Add is an
// error. Config.Segment has no meaning there.
func NewPeerSet(holder int, add func(Config) (*Arena, error)) *Set {
	return &Set{peer: &peer{holder: holder, add: add, patience: announceWait, arrived: make(chan struct{})}}
}

// ask is Add outside the host.
func (s *Set) ask(c Config) (*Arena, error) {
	if s.peer.add == nil {
		return nil, fmt.Errorf("arena %q: %w", c.Name, ErrHost)
	}
	a, err := s.peer.add(c)
	if err != nil {
		return nil, err
	}
	return a, s.arrive(a)
}

// Attach is Attach for this process, and makes the arena known to the set. It takes ownership of the files,
// also on an error. It is an error if the set has an arena of that ID.
func (s *Set) Attach(sh Shared) (*Arena, error) {
	holder := -1 // Attach rejects it and closes the files
	if s.peer != nil && s.arenas[sh.ID].Load() == nil {
		holder = s.peer.holder
	}
	a, err := Attach(sh, holder)
	if holder < 0 {
		return nil, fmt.Errorf("attach arena %d: %w: the set has one, or is the host's", sh.ID, ErrBusy)
	}
	if err != nil {
		return nil, err
	}
	if err := s.arrive(a); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// arrive makes an attached arena known and wakes the goroutines that wait for it.
func (s *Set) arrive(a *Arena) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.arenas[a.config.ID].Load() {
	case a:
		return nil
	case nil:
	default:
		return fmt.Errorf("attach arena %d: %w: the set has one", a.config.ID, ErrBusy)
	}
	s.put(a)
	close(s.peer.arrived)
	s.peer.arrived = make(chan struct{})
	return nil
}

// await is Of for an arena that is not known yet.
func (s *Set) await(id uint8) (*Arena, error) {
	if id < firstID {
		return nil, ErrForeign
	}
	var late <-chan time.Time
	for {
		s.mu.Lock()
		a, arrived := s.arenas[id].Load(), s.peer.arrived
		s.mu.Unlock()
		if a != nil {
			return a, nil
		}
		if late == nil {
			late = time.After(s.peer.patience)
		}
		select {
		case <-arrived:
		case <-late:
			return nil, ErrForeign
		}
	}
}

// Detach releases the view of an arena that the host has removed: it is unknown from now on. With open claims of
// this process it returns ErrOpen and the memory stays mapped for ever; else it is unmapped once the Arena is
// unreachable. Without such an arena it returns ErrForeign.
func (s *Set) Detach(id uint8) error {
	if s.peer == nil {
		return fmt.Errorf("detach arena %d: this is the host, which removes", id)
	}
	s.mu.Lock()
	a := s.arenas[id].Load()
	if a != nil {
		s.drop(a)
	}
	s.mu.Unlock()
	if a == nil {
		return fmt.Errorf("detach arena %d: %w", id, ErrForeign)
	}
	if err := a.Close(); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

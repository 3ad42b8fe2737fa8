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

// Set finds arenas by the ID in a handle. Looking up takes no lock. There are two kinds: the host's Set, from NewSet
// or the zero value, creates the arenas; another process's, from NewPeerSet, holds the arenas that the host shares.
type Set struct {
	arenas  [hostabi.MaxArena + 1]atomic.Pointer[Arena]
	credits [hostabi.MaxHolder + 1]atomic.Pointer[func(h hostabi.Handle)] // by holder
	peer    *peer                                                         // nil: the host

	mu       sync.Mutex                   // adding and removing
	last     int                          // guarded by mu: ID given last
	next     [hostabi.MaxArena + 1]uint64 // guarded by mu: first generation of the next arena of each ID
	watchers []*watcher                   // guarded by mu
	granted  word                         // guarded by mu: holders that were granted and not swept since
	sweeping word                         // guarded by mu: holders being swept
}

type watcher struct{ fn func(a *Arena, added bool) }

// NewSet returns a host's set without arenas.
func NewSet() *Set { return &Set{} }

// Add makes an arena under an ID that the set chooses; there are 255. Outside the host it asks the host for it,
// and blocks until the answer arrives.
func (s *Set) Add(c Config) (*Arena, error) {
	if s.peer != nil {
		return s.ask(c)
	}
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
	s.put(a)
	return a, nil
}

// put makes an arena known. The caller must hold mu.
func (s *Set) put(a *Arena) {
	a.set = s
	s.arenas[a.config.ID].Store(a)
	for _, w := range s.watchers {
		w.fn(a, true)
	}
}

// drop makes an arena unknown. The caller must hold mu.
func (s *Set) drop(a *Arena) {
	s.arenas[a.config.ID].Store(nil)
	for _, w := range s.watchers {
		w.fn(a, false)
	}
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

// Of returns the arena that h belongs to, or ErrForeign. Outside the host it first waits, for a bounded time,
// for an arena not announced yet: the host announces each before the first message about it, but messages take
// another path and may be faster.
func (s *Set) Of(h hostabi.Handle) (*Arena, error) {
	if a := s.arenas[h.Arena()].Load(); a != nil {
		return a, nil
	}
	if s.peer != nil {
		return s.await(h.Arena())
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

// Credit is Arena.Credit in the arena that h belongs to. It never waits.
func (s *Set) Credit(h hostabi.Handle) error {
	if a := s.arenas[h.Arena()].Load(); a != nil {
		return a.Credit(h)
	}
	return ErrForeign
}

// Credits makes fn the function that gives the process holder its credits. fn is called once for each block that this process frees or
// learns to be free, on the goroutine that did, with no lock held, and must not block. h is the handle whose use of the block has ended.
// Outside the host the only path is through the host, hostabi.ArenaHost, whichever process receives the credit. nil means there is none.
func (s *Set) Credits(holder int, fn func(h hostabi.Handle)) {
	if fn == nil {
		s.credits[holder].Store(nil)
		return
	}
	s.credits[holder].Store(&fn)
}

// tell returns the function that notifies the receiver of the credit, or nil.
func (s *Set) tell(creditor int) *func(h hostabi.Handle) {
	if s == nil || creditor < 0 {
		return nil
	}
	if s.peer != nil {
		creditor = hostabi.ArenaHost
	}
	return s.credits[creditor].Load()
}

// Each calls fn with every arena, in the order of their IDs.
func (s *Set) Each(fn func(*Arena)) {
	for id := range s.arenas {
		if a := s.arenas[id].Load(); a != nil {
			fn(a)
		}
	}
}

// Watch calls fn with every arena, then with each that is added, before Add returns it, and each that was removed,
// until cancel returns. Calls come one at a time, under the lock of Add and Remove: fn must be quick, must only
// look up in the set, and must not call cancel.
func (s *Set) Watch(fn func(a *Arena, added bool)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Each(func(a *Arena) { fn(a, true) })
	w := &watcher{fn}
	s.watchers = append(s.watchers[:len(s.watchers):len(s.watchers)], w)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		var left []*watcher
		for _, other := range s.watchers {
			if other != w {
				left = append(left, other)
			}
		}
		s.watchers = left
	}
}

// Grant returns a holder number for a process that will share the arenas of this host, or ErrHolders if all 23
// are taken. It is taken until Sweep.
func (s *Set) Grant() (holder int, err error) {
	if s.peer != nil {
		return 0, fmt.Errorf("grant a holder: %w", ErrHost)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for holder := 1; holder <= hostabi.MaxHolder; holder++ {
		if s.granted&(1<<holder) == 0 {
			s.granted |= 1 << holder
			return holder, nil
		}
	}
	return 0, fmt.Errorf("%w: %d processes can share the arenas of one host at a time: use fewer native plugins or "+
		"worker processes, or more environments in each", ErrHolders, hostabi.MaxHolder)
}

// Sweep takes back all blocks that a process held in any arena. Its holder number can be granted again afterwards.
// The process must have ended, and every handle that it sent must have been claimed.
//
// Such a process may have written anything anywhere in the arenas it shared. Sweep repairs the words: a block that
// the host holds gets the host's state; a block that no running process can hold, with a word that no arena writes,
// becomes free under a generation that was never used. Blocks that running processes seem to hold stay theirs. It
// may be called again after an error, which leaves the holder taken: ErrDamaged while another process damages words.
func (s *Set) Sweep(holder int) (Swept, error) {
	granted, err := s.beginSweep(holder)
	if err != nil {
		return Swept{}, err
	}
	var swept Swept
	var errs []error
	s.Each(func(a *Arena) {
		one, err := a.sweepAmong(holder, granted)
		swept.add(one)
		errs = append(errs, err)
	})
	err = errors.Join(errs...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweeping &^= 1 << holder
	if err == nil {
		s.granted &^= 1 << holder
	}
	return swept, err
}

// beginSweep returns the granted holders.
func (s *Set) beginSweep(holder int) (word, error) {
	if s.peer != nil {
		return 0, fmt.Errorf("sweep holder %d: %w", holder, ErrHost)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder < 1 || holder > hostabi.MaxHolder || s.granted&(1<<holder) == 0 || s.sweeping&(1<<holder) != 0 {
		return 0, fmt.Errorf("sweep holder %d: not granted", holder)
	}
	s.sweeping |= 1 << holder
	return s.granted, nil
}

// Remove closes an arena of the set and frees its ID. A later arena of that ID rejects all handles of this
// one. With open claims it returns ErrOpen, and the arena stays. Only the host removes arenas.
func (s *Set) Remove(id uint8) error {
	if s.peer != nil {
		return fmt.Errorf("remove arena %d: %w", id, ErrHost)
	}
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
	s.drop(a)
	return nil
}

// Close removes all arenas. Arenas with open claims stay, and their errors are returned together; call it again
// later. Outside the host it only releases the views.
func (s *Set) Close() error {
	var errs []error
	s.Each(func(a *Arena) {
		if s.peer != nil {
			errs = append(errs, s.Detach(a.config.ID))
		} else {
			errs = append(errs, s.Remove(a.config.ID))
		}
	})
	return errors.Join(errs...)
}

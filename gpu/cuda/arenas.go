package cuda

import (
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
)

// arenas are those whose blocks the device may read where they lie. The memory of one is registered with the driver, whole, when
// a block of it is first read, and until the arena is removed and nothing that was submitted reads it any more.
type arenas struct {
	mu      sync.Mutex
	known   []*mapping    // guarded by mu
	refused bool          // guarded by mu: the log has memory that cannot be registered
	failed  error         // guarded by mu: of unregistering
	staged  *stat.Counter // guarded by mu; nil: not counted
}

// mapping is the memory of an arena.
type mapping struct {
	arena   *arena.Arena // keeps the memory mapped
	log     *slog.Logger
	in      *arenas
	on      *driver.Registration // nil: not registered
	never   bool                 // it cannot be
	watches int                  // that know the arena
	readers int                  // copies of it that are under way
}

// Watch lets learners read blocks of a set's arenas where they lie, by copies that the device makes itself, until cancel. Memory that
// cannot be registered is copied by the processor first; log is told that once, and from now on staged, if it is not nil, counts the bytes
// of observations that are copied so by any learner. It may be called for several sets, and several times.
func (b *Backend) Watch(set *arena.Set, log *slog.Logger, staged *stat.Counter) (cancel func()) {
	own, mine := &b.arenas, map[*arena.Arena]*mapping{} // mine is guarded by mu
	own.mu.Lock()
	own.staged = staged
	own.mu.Unlock()
	stop := set.Watch(func(a *arena.Arena, added bool) {
		own.mu.Lock()
		defer own.mu.Unlock()
		if added {
			mine[a] = own.add(a, log)
			return
		}
		own.drop(mine[a])
		delete(mine, a)
	})
	return func() {
		stop()
		own.mu.Lock()
		defer own.mu.Unlock()
		for _, m := range mine {
			own.drop(m)
		}
	}
}

// add begins a watch of an arena. The caller holds mu.
func (s *arenas) add(a *arena.Arena, log *slog.Logger) *mapping {
	at := slices.IndexFunc(s.known, func(m *mapping) bool { return m.arena == a })
	if at < 0 {
		at = len(s.known)
		s.known = append(s.known, &mapping{arena: a, log: log, in: s})
	}
	s.known[at].watches++
	return s.known[at]
}

// drop ends a watch. The caller holds mu.
func (s *arenas) drop(m *mapping) {
	if m.watches--; m.watches == 0 {
		s.known = slices.DeleteFunc(s.known, func(other *mapping) bool { return other == m })
	}
	m.leave()
}

// leave takes the memory from the device if the arena has no watch and no reader. The caller holds mu of its arenas.
func (m *mapping) leave() {
	if m.watches == 0 && m.readers == 0 && m.on != nil {
		m.in.failed = errors.Join(m.in.failed, m.on.Close())
		m.on = nil
	}
}

// reach returns where the device finds memory that lies in a block, and whose it is until its done is called; nil: it does not.
func (s *arenas) reach(d *driver.Device, b []byte) (kernels.Address, *mapping) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.known {
		memory := arena.MemoryOf(m.arena)
		at, ok := place(memory, b)
		if !ok || m.never {
			continue
		}
		if m.on == nil && !m.register(d, memory) {
			continue
		}
		m.readers++
		return m.on.Address + kernels.Address(at), m
	}
	if s.staged != nil {
		s.staged.Add(uint64(len(b)))
	}
	return 0, nil
}

// register gives the memory to the device.
func (m *mapping) register(d *driver.Device, memory []byte) bool {
	on, err := d.Register(memory)
	if err == nil {
		m.on = on
		return true
	}
	m.never = true
	if !m.in.refused {
		m.in.refused = true
		m.log.Warn("memory of blocks cannot be registered with the device: the processor copies them first", "arena", m.arena.Name(), "error", err)
	}
	return false
}

// done ends a reading, which the device has made.
func (m *mapping) done() {
	m.in.mu.Lock()
	defer m.in.mu.Unlock()
	m.readers--
	m.leave()
}

// close takes all memory from the device.
func (s *arenas) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.known {
		if m.on != nil {
			s.failed = errors.Join(s.failed, m.on.Close())
			m.on = nil
		}
	}
	err := s.failed
	s.failed = nil
	return err
}

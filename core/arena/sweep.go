package arena

import (
	"fmt"
	"math/bits"

	"github.com/rlhost/rlhost/hostabi"
)

// Swept counts the claims of an ended process.
type Swept struct {
	Write, Live, Zombie int // blocks by their state at that time
	Freed               int // blocks that became free
	Mended              int // blocks whose word no arena writes
}

func (s *Swept) add(o Swept) {
	s.Write, s.Live, s.Zombie = s.Write+o.Write, s.Live+o.Live, s.Zombie+o.Zombie
	s.Freed, s.Mended = s.Freed+o.Freed, s.Mended+o.Mended
}

// Sweep takes back all that holder held: a block on loan to it becomes free unwritten, a block that it alone read becomes free, any other
// only loses this holder. It must not run before the process is known to have ended and every handle that it sent has been claimed. Only
// the host sweeps, holders 1 to 23. Credits are given as by a release, including the credits that the ended process still owed.
//
// Sweep also repairs words that the process may have damaged: see Set.Sweep, which knows all holders. Here every
// other holder counts as running.
func (a *Arena) Sweep(holder int) (Swept, error) {
	return a.sweepAmong(holder, holderMask&^1)
}

// sweepAmong sweeps a holder while the holders of granted, which may contain it, are the only ones.
func (a *Arena) sweepAmong(holder int, granted word) (Swept, error) {
	if holder < 1 || holder > hostabi.MaxHolder {
		return Swept{}, fmt.Errorf("arena %q: sweep holder %d: must be between 1 and %d", a.config.Name, holder, hostabi.MaxHolder)
	}
	if !a.host() {
		return Swept{}, fmt.Errorf("arena %q: sweep: %w", a.config.Name, ErrHost)
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return Swept{}, nil
	}
	s := sweep{a: a, dead: 1 << holder, alive: granted &^ (1 << holder)}
	whole := s.run()
	a.view.describe(a.layout, a.config.ID, a.first)
	a.mu.Unlock()
	for block := range uint32(a.layout.blocks) {
		a.sweepCredit(block, holder)
	}
	if !whole {
		return s.swept, fmt.Errorf("arena %q: sweep holder %d: %w", a.config.Name, holder, ErrDamaged)
	}
	return s.swept, nil
}

// Stats is a picture of an arena. Blocks that move while it is taken may be counted before or after their move.
type Stats struct {
	Free, Write, Live, Zombie int // blocks in each state; after Close they are in none of them
	Loans                     int // open loans of this process
	Leases                    int // claims of this process on committed blocks: leases, retains, and commits
	Others                    int // blocks that other processes hold, counted once for each

	// Since New, by all processes; a loan that Sweep ended counts as aborted. Meaningless once a process has
	// damaged the words.
	Commits, Aborts, Frees uint64
}

// Stats counts blocks and claims. It reads one word for each block.
func (a *Arena) Stats() Stats {
	var s Stats
	for block := range uint32(a.layout.blocks) {
		c := a.claims(block)
		w := a.word(block)
		s.count(w, a.me)
		if (w.state() == stateLive || w.state() == stateZombie) && c.generation() == w.generation() {
			s.Leases += c.count()
		}
		s.Frees += generationsBetween(a.first, w.generation()) - a.local[block].skipped.Load()
		s.Aborts += a.view.blocks[block].aborts.Load()
	}
	// Each generation that is over ended in an abort or had a commit, so commits need no counter of their own.
	s.Commits = s.Frees - s.Aborts + uint64(s.Live+s.Zombie)
	return s
}

func (s *Stats) count(w, me word) {
	switch w.state() {
	case stateFree:
		s.Free++
	case stateWrite:
		s.Write++
		if w&me != 0 {
			s.Loans++
		}
	case stateLive:
		s.Live++
	case stateZombie:
		s.Zombie++
	}
	s.Others += bits.OnesCount64(uint64(w.holders() &^ me))
}

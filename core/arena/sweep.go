package arena

import (
	"fmt"
	"math/bits"
)

// Swept counts what a dead process held.
type Swept struct {
	Write, Live, Zombie int // blocks by their state at that time
	Freed               int // those of them that are free now
}

// Sweep takes back all that holder held: a block on loan to it becomes free unwritten, a block that it alone
// read becomes free, any other only loses this holder. It must not run before the process is known to be dead
// and every handle that it had sent has been claimed. The host is holder 0 and cannot be swept; other holders are
// 1 to 23. Credits are given as by a release. Sweep also restores hints that the process had no time to give.
func (a *Arena) Sweep(holder int) (Swept, error) {
	if holder < 0 || holder >= holderBits || word(1)<<holder == a.me {
		return Swept{}, fmt.Errorf("arena %q: sweep holder %d: not another process", a.config.Name, holder)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sweep(word(1) << holder), nil
}

func (a *Arena) sweep(bit word) Swept {
	var s Swept
	for block := range uint32(a.layout.blocks) {
		w := a.word(block)
		if w.state() == stateFree {
			a.view.hints[block/hintBlocks].Or(1 << (block % hintBlocks))
		}
		if w&bit == 0 {
			continue
		}
		freed := a.drop(block, bit)
		switch w.state() {
		case stateWrite:
			s.Write++
		case stateLive:
			s.Live++
		case stateZombie:
			s.Zombie++
		}
		if freed {
			s.Freed++
		}
	}
	return s
}

// Stats is a picture of an arena. Blocks that move while it is taken may be counted before or after their move.
type Stats struct {
	Free, Write, Live, Zombie int // blocks in each state; after Close they are in none of them
	Loans                     int // open loans of this process
	Leases                    int // claims of this process on committed blocks: leases, retains, and what commits left
	Others                    int // blocks that other processes hold, counted once for each

	Commits, Aborts, Frees uint64 // since New, by all processes; a loan that Sweep ended counts as aborted
}

// Stats counts blocks and claims. It reads one word for each block.
func (a *Arena) Stats() Stats {
	var s Stats
	for block := range uint32(a.layout.blocks) {
		c := claims(a.local[block].claims.Load())
		w := a.word(block)
		s.count(w, a.me)
		if (w.state() == stateLive || w.state() == stateZombie) && c.generation() == w.generation() {
			s.Leases += c.count()
		}
		s.Frees += generationsBetween(a.first, w.generation())
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

package arena

import (
	"runtime"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// generationSkip is how far a repaired block jumps ahead of all generations that this process knows, so that no
// earlier handle names it. Far fewer generations can have passed unseen.
const generationSkip = 1 << 24

// A sweep that finds one of our goroutines between its counter and a word waits that long for it: first it yields,
// then it sleeps. A timeout costs that goroutine only a second try.
const (
	mendPatience = 60 * time.Millisecond
	mendYields   = 100
	mendSleep    = 100 * time.Microsecond
)

// sweep is one pass over the blocks of an arena for a process that has ended. Whatever that process has written
// into the words, the host's own claims and loans are in memory that it could not reach; they determine what a
// word must be. Where the host has none, a word that no transition of an arena produces belongs to no holder.
type sweep struct {
	a     *Arena
	dead  word // its bit
	alive word // bits of the other running processes, without the host's
	swept Swept
}

// run repairs all words. It fails if another process keeps writing into one.
func (s *sweep) run() (whole bool) {
	whole = true
	var unsure []uint32
	for block := range uint32(s.a.layout.blocks) {
		sure, ended := s.block(block, false)
		whole = whole && ended
		if !sure {
			unsure = append(unsure, block)
		}
	}
	begin := time.Now()
	for i := 0; len(unsure) > 0; i++ {
		patient := time.Since(begin) < s.a.patience
		if patient && i < mendYields {
			runtime.Gosched()
		} else if patient {
			time.Sleep(mendSleep)
		}
		left := unsure[:0]
		for _, block := range unsure {
			sure, ended := s.block(block, !patient)
			whole = whole && ended
			if !sure {
				left = append(left, block)
			}
		}
		unsure = left
	}
	return whole
}

// block repairs one block's word. Without force it leaves alone what one of our own goroutines may be about to
// change, and then sure is false. It does not end if another process keeps writing into the word.
func (s *sweep) block(block uint32, force bool) (sure, ended bool) {
	a := s.a
	for range maxTries {
		c := a.claims(block)
		w := a.word(block)
		if a.claims(block) != c {
			continue
		}
		if !force && s.moving(c, w) {
			return false, true
		}
		want, mended := s.judge(c, w)
		if want == w {
			return true, true
		}
		if want.state() == stateFree && !s.seal(block, c, w) || !a.swap(block, w, want) {
			continue
		}
		s.count(block, c, w, want, mended)
		if a.claims(block) == c { // else our own goroutines may have acted on the word as it was
			return true, true
		}
	}
	return true, false
}

// moving reports whether a goroutine of ours may be between the counter and the word of a block.
func (s *sweep) moving(c claims, w word) bool {
	taking := !c.holds() && w.state() == stateWrite && w&s.a.me != 0
	committing := c.count() == 1 && w.is(c.generation(), stateWrite)
	return c.closing() || taking || committing
}

// judge returns the value that a word must get, and whether it had one that no arena writes.
func (s *sweep) judge(c claims, w word) (want word, mended bool) {
	others := w.holders() & s.alive
	switch {
	case c.closing() && c.generation() == w.generation(): // our own goroutine will finish; only the ended process's bit is in question
		return w &^ s.dead, false
	case c.loan():
		want = makeWord(c.generation(), stateWrite, s.a.me)
		return want, want != w
	case c.count() > 0 && (w.is(c.generation(), stateLive) || w.is(c.generation(), stateZombie)):
		want = makeWord(c.generation(), w.state(), others|s.a.me)
		return want, want != w&^s.dead
	case c.count() > 0:
		if w.generation() != c.generation() {
			others = 0
		}
		return makeWord(c.generation(), stateLive, others|s.a.me), true
	}
	return s.judgeUnclaimed(c, w, others)
}

// judgeUnclaimed is judge for a block on which the host has no claim.
func (s *sweep) judgeUnclaimed(c claims, w, others word) (want word, mended bool) {
	timely := c.precedes(w.generation())
	strange := w.holders() &^ (s.alive | s.dead)
	committed := w.state() == stateLive || w.state() == stateZombie
	switch {
	case timely && w.state() == stateFree && w.holders() == 0 && w.generation() != c.generation(),
		w.state() == stateClosed && w.holders() == 0 && s.a.closing.Load():
		return w, false
	case timely && w.state() == stateWrite && w.generation() != c.generation() && strange == 0 && single(w.holders()),
		timely && committed && strange == 0 && w.holders() != 0:
		want, mended = w&^s.dead, false
	case others != 0 && timely && (committed || w.state() == stateWrite && single(others)):
		return makeWord(w.generation(), w.state(), others), true
	case others != 0: // running processes may read it: kept for them
		return makeWord(s.unused(c, w), stateZombie, others), w != makeWord(w.generation(), stateZombie, others)
	default:
		return makeWord(s.unused(c, w), stateFree, 0), true
	}
	if want.holders() == 0 {
		want = w.freed()
	}
	return want, mended
}

// unused returns a generation that no handle has ever named, and that may come next here.
func (s *sweep) unused(c claims, w word) uint64 {
	if g := generationAfter(w.generation(), generationSkip); follows(w.generation(), c.generation()) && follows(g, c.generation()) {
		return g
	}
	return generationAfter(c.generation(), generationSkip)
}

func single(holders word) bool { return holders != 0 && holders&(holders-1) == 0 }

// seal prevents our goroutines from claiming a block that the sweep is about to free, and poisons it in invariants
// builds.
func (s *sweep) seal(block uint32, c claims, w word) bool {
	a := s.a
	void := makeClaims(w.generation(), claimOver)
	taking := w.state() == stateWrite && w&a.me != 0 && follows(w.generation(), c.generation())
	if taking && !a.local[block].claims.CompareAndSwap(uint64(c), uint64(void)) {
		return false
	}
	if invariants {
		poison(a.bytes(block))
	}
	return true
}

// count records what happened to a block.
func (s *sweep) count(block uint32, c claims, w, want word, mended bool) {
	if mended {
		s.swept.Mended++
		if !c.holds() && w.generation() != want.generation() {
			s.a.local[block].skipped.Add(generationSkip - 1)
		}
	} else {
		switch w.state() {
		case stateWrite:
			s.swept.Write++
			s.a.view.blocks[block].aborts.Add(1)
		case stateLive:
			s.swept.Live++
		case stateZombie:
			s.swept.Zombie++
		}
	}
	if want.state() == stateFree {
		s.swept.Freed++
	}
}

// sweepCredit restores the hint of a free block and gives the credit that is due. An ended process gets none.
func (a *Arena) sweepCredit(block uint32, dead int) {
	creditor := &a.view.blocks[block].creditor
	if n := creditor.Load(); n == uint32(dead)+1 || n > hostabi.MaxHolder+1 {
		creditor.CompareAndSwap(n, 0)
	}
	if a.local[block].onFree.Load() != nil {
		creditor.Store(hostabi.ArenaHost + 1)
	}
	if c, w := a.claims(block), a.word(block); w.state() == stateFree && a.fits(c, w) {
		a.announce(block, w.generation())
	}
}

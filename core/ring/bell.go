package ring

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// nap is the longest sleep. Whoever should have rung may have died before it could.
const nap = 100 * time.Millisecond

// contention is how often a compare-and-swap on a word of the bell is tried again. Honest peers change the word
// rarely; one that does nothing else must not hold us up.
const contention = 16

// bell is a futex word that wakes whoever sleeps on it. Bit 0 says that somebody does; the rest counts, so that a
// sleeper who has seen an older value does not fall asleep. It is a flag and not a number of sleepers, because of
// one who dies in its sleep nothing remains but the flag, which costs the next ring one call.
type bell struct {
	word  *atomic.Uint32
	waits *atomic.Uint64
	wakes *atomic.Uint64
}

const asleep = 1

// arm announces that the caller is about to sleep and returns the value to sleep on. Look once more at what you
// wait for in between: a ring before arm wakes nobody. ok is false if the word would not hold still.
func (b *bell) arm() (seen uint32, ok bool) {
	for range contention {
		v := b.word.Load()
		if v&asleep != 0 || b.word.CompareAndSwap(v, v|asleep) {
			return v | asleep, true
		}
	}
	return 0, false
}

// sleep waits for a ring after arm, for at most the time left and at most a nap.
func (b *bell) sleep(seen uint32, left time.Duration) {
	if left < 0 || left > nap {
		left = nap
	}
	b.waits.Add(1)
	shm.Wait(b.word, seen, left)
}

// ring wakes everybody if anybody sleeps. The store that the sleepers wait for comes before, and is followed by
// a full barrier, as every atomic store in Go is.
func (b *bell) ring() {
	if b.word.Load()&asleep != 0 {
		b.wake()
	}
}

// wake is ring for when the flag was seen. If the word changes meanwhile, somebody else rings it or a new sleeper
// announces itself, who has yet to look.
func (b *bell) wake() {
	v := b.word.Load()
	if v&asleep == 0 || !b.word.CompareAndSwap(v, (v+2)&^asleep) {
		return
	}
	b.wakes.Add(1)
	shm.Wake(b.word)
}

// kick wakes everybody, whether the flag is set or not.
func (b *bell) kick() {
	for range contention {
		v := b.word.Load()
		if b.word.CompareAndSwap(v, (v+2)&^asleep) {
			break
		}
	}
	shm.Wake(b.word)
}

// spinner decides how long to spin before sleeping: twice as long after a spin that helped, half as long after one
// that did not. Spinning saves the two switches of a sleep if the peer runs on another processor and answers soon,
// and takes time from it otherwise.
type spinner struct {
	turns int // the next spin's
	limit int // 0: never spin
}

const (
	maxSpin  = 160 // turns of 20 to 40 ns
	minSpin  = 8   // enough to find out when spinning would help again
	spinStep = 8   // turns from look to look
)

func newSpinner() spinner {
	if runtime.NumCPU() == 1 {
		return spinner{}
	}
	return spinner{turns: maxSpin, limit: maxSpin}
}

func (s *spinner) hit() { s.turns = min(2*s.turns, s.limit) }

func (s *spinner) miss() { s.turns = min(max(s.turns/2, minSpin), s.limit) }

// deadline is a moment on the monotonic clock; the zero value is never.
type deadline struct{ at time.Time }

// after returns the moment when a timeout ends that begins now; negative: never.
func after(timeout time.Duration) deadline {
	if timeout < 0 {
		return deadline{}
	}
	return deadline{time.Now().Add(timeout)}
}

// left returns how much time is left, a nap if it never ends.
func (d deadline) left() time.Duration {
	if d.at.IsZero() {
		return nap
	}
	return time.Until(d.at)
}

package fifo

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// The longest sleeps. Whoever should have rung may have died before it could; and where several sleep, whoever was
// rung for them may be busy (see waiter).
const (
	nap       = 100 * time.Millisecond
	sharedNap = 8 * time.Millisecond
)

// shortNap is how long a sleep keeps Go's scheduler out of it. That scheduler answers a sleep of which it knows by
// giving the processor's share away, which wakes and puts to sleep threads of its own, each time; among 20 processes
// they take a third of all processors. Longer, goroutines that are ready would wait for nothing.
const shortNap = time.Millisecond

// contention is how often a compare-and-swap on the word of a bell is tried again. Honest peers change the word
// rarely; one that does nothing else must not hold us up.
const contention = 16

// Bell is a futex word that wakes those who sleep on it. Bit 0 says that somebody does; the rest counts, so that a
// sleeper who has seen an older value does not fall asleep. It is a flag and not a number of sleepers, because of
// one who dies in its sleep nothing remains but the flag, which costs the next ring one call.
//
// A ring clears the flag and wakes all, or the one who has slept longest where there are many. In the second case the
// flag is gone although others may sleep; so whoever was woken sees to it that it is set again (see waiter).
type Bell struct {
	word  *atomic.Uint32
	waits *atomic.Uint64
	wakes *atomic.Uint64
	many  bool // several may sleep: wake one at a time
	doze  *dozers
}

const asleep = 1

// arm announces that the caller is about to sleep and returns the value to sleep on. Look once more at what you
// wait for in between: a ring before arm wakes nobody. ok is false if the word would not hold still.
func (b *Bell) arm() (seen uint32, ok bool) {
	for range contention {
		v := b.word.Load()
		if v&asleep != 0 || b.word.CompareAndSwap(v, v|asleep) {
			return v | asleep, true
		}
	}
	return 0, false
}

// sleep waits for a ring, for at most the time left, which is at most a nap, and reports whether it came. doze says
// that it is likely to come soon.
func (b *Bell) sleep(seen uint32, left time.Duration, doze bool) bool {
	if b.many {
		left = min(left, sharedNap)
	}
	left = min(left, nap)
	b.waits.Add(1)
	if doze && b.many && b.doze.enter() {
		over := shm.Doze(b.word, seen, min(left, shortNap))
		b.doze.leave()
		if !over || left <= shortNap {
			return b.rung(seen)
		}
		left -= shortNap
	}
	shm.Wait(b.word, seen, left)
	return b.rung(seen)
}

// rung reports whether the bell was rung since its word had the value.
func (b *Bell) rung(seen uint32) bool { return b.word.Load()>>1 != seen>>1 }

// dozers counts the ends of one queue in this process that doze, so that at least one share of GOMAXPROCS is left to
// others.
type dozers struct {
	n     atomic.Int32
	limit int32
}

func (d *dozers) enter() bool {
	if d.n.Add(1) <= d.limit {
		return true
	}
	d.n.Add(-1)
	return false
}

func (d *dozers) leave() { d.n.Add(-1) }

// Armed reports whether somebody sleeps and has not been rung for. The store that the sleepers wait for comes before
// it, and is followed by a full barrier, as every atomic store in Go is.
func (b *Bell) Armed() bool { return b.word.Load()&asleep != 0 }

// Ring wakes one sleeper, or all if there cannot be many. If the word changes meanwhile, somebody else rings, or a
// new sleeper announces itself who has yet to look.
func (b *Bell) Ring() {
	v := b.word.Load()
	if v&asleep == 0 || !b.word.CompareAndSwap(v, (v+2)&^asleep) {
		return
	}
	b.wakes.Add(1)
	n := math.MaxInt32
	if b.many {
		n = 1
	}
	shm.WakeSome(b.word, n)
}

// Kick wakes everybody, whether the flag is set or not.
func (b *Bell) Kick() {
	for range contention {
		v := b.word.Load()
		if b.word.CompareAndSwap(v, (v+2)&^asleep) {
			break
		}
	}
	shm.Wake(b.word)
}

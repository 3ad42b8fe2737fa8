package fifo

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// The longest sleeps. The process that should have rung may have ended first; and where several sleep, the woken
// one may be busy (see waiter).
const (
	nap       = 100 * time.Millisecond
	sharedNap = 8 * time.Millisecond
)

// shortNap is how long a sleep keeps Go's scheduler out of it. The scheduler answers a sleep that it knows of by
// handing off the processor, which wakes and parks threads each time; among 20 processes they take a third of all
// processors. Longer, goroutines that are ready would wait for nothing.
const shortNap = time.Millisecond

// contention is how often a compare-and-swap on the word of a bell is retried. Well-behaved peers change the word
// rarely; a peer that changes it all the time must not block us.
const contention = 16

// Bell is a futex word that wakes its sleepers. Bit 0 is set while any sleep; the other bits count, so that a
// sleeper that has seen an older value does not fall asleep. It is a flag and not a number of sleepers, because a
// sleeper that is killed leaves only the flag, which costs the next ring one call.
//
// A ring clears the flag and wakes all, or the longest sleeper where there are many. In the second case the flag is
// cleared although others may sleep, so the woken sleeper must set it again (see Waiter).
type Bell struct {
	word  *atomic.Uint32
	waits *atomic.Uint64
	wakes *atomic.Uint64
	many  bool // several may sleep: wake one at a time
	doze  *dozers
}

const asleep = 1

// arm announces that the caller is about to sleep and returns the value to sleep on. Check the awaited
// condition again in between: a ring before arm wakes no sleeper. ok is false if the word keeps changing.
func (b *Bell) arm() (seen uint32, ok bool) {
	for range contention {
		v := b.word.Load()
		if v&asleep != 0 || b.word.CompareAndSwap(v, v|asleep) {
			return v | asleep, true
		}
	}
	return 0, false
}

// sleep waits for a ring, for at most the time left, which is at most a nap, and reports whether it came. doze
// means that it is likely to come quickly.
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

// dozers counts the ends of one queue in this process that doze, so that at least one processor of GOMAXPROCS is
// left to others.
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

// Armed reports whether a sleeper has not been rung for. The store that the sleepers wait for comes before it, and
// is followed by a full barrier, as every atomic store in Go is.
func (b *Bell) Armed() bool { return b.word.Load()&asleep != 0 }

// Ring wakes one sleeper, or all if there cannot be many. If the word changes meanwhile, another process rings, or
// a new sleeper announces itself and has yet to check.
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

// Kick wakes all sleepers, whether the flag is set or not.
func (b *Bell) Kick() {
	for range contention {
		v := b.word.Load()
		if b.word.CompareAndSwap(v, (v+2)&^asleep) {
			break
		}
	}
	shm.Wake(b.word)
}

package ring

import (
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// nap is the longest sleep: the process that should have rung may have ended first.
const nap = 100 * time.Millisecond

// contention is how often a compare-and-swap on the word of a bell is retried. Well-behaved peers change the word
// rarely; a peer that changes it all the time must not block us.
const contention = 16

// bell is a futex word that wakes its sleepers. Bit 0 is set while any sleep; the other bits count, so that a
// sleeper that has seen an older value does not fall asleep. It is a flag and not a number of sleepers, because a
// sleeper that is killed leaves only the flag, which costs the next ring one call.
//
// A ring clears the flag and wakes all.
type bell struct {
	word  *atomic.Uint32
	waits *atomic.Uint64
	wakes *atomic.Uint64
}

const asleep = 1

// arm announces that the caller is about to sleep and returns the value to sleep on. Check the awaited
// condition again in between: a ring before arm wakes no sleeper. ok is false if the word keeps changing.
func (b *bell) arm() (seen uint32, ok bool) {
	for range contention {
		v := b.word.Load()
		if v&asleep != 0 || b.word.CompareAndSwap(v, v|asleep) {
			return v | asleep, true
		}
	}
	return 0, false
}

// sleep waits for a ring, for at most the time left, which is at most a nap.
func (b *bell) sleep(seen uint32, left time.Duration) {
	b.waits.Add(1)
	shm.Wait(b.word, seen, min(left, nap))
}

// armed reports whether a sleeper has not been rung for. The store that the sleepers wait for comes before it, and
// is followed by a full barrier, as every atomic store in Go is.
func (b *bell) armed() bool { return b.word.Load()&asleep != 0 }

// ring wakes the sleepers. If the word changes meanwhile, another process rings, or
// a new sleeper announces itself and has yet to check.
func (b *bell) ring() {
	v := b.word.Load()
	if v&asleep == 0 || !b.word.CompareAndSwap(v, (v+2)&^asleep) {
		return
	}
	b.wakes.Add(1)
	shm.Wake(b.word)
}

// kick wakes all sleepers, whether the flag is set or not.
func (b *bell) kick() {
	for range contention {
		v := b.word.Load()
		if b.word.CompareAndSwap(v, (v+2)&^asleep) {
			break
		}
	}
	shm.Wake(b.word)
}

// bells returns a header's bells: for the end that waits for messages and for the end that waits for room.
func (h *header) bells() (notEmpty, notFull bell) {
	return bell{&h.notEmpty, &h.emptyWaits, &h.emptyWakes}, bell{&h.notFull, &h.fullWaits, &h.fullWakes}
}

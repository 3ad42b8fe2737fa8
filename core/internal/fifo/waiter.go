package fifo

import (
	"runtime"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// Spinning saves the two switches of a sleep, and on virtual machines the tens of microseconds that a processor that has
// gone idle takes to come back. It first looks again and again, for a peer that runs on another processor and answers at
// once; then, at a ring between two, it yields the processor between looks, so that a peer that shares it runs without
// having been asleep. Only trying shows whether the peer answers quickly. After many misses in a row the spins are cut
// short for some time, and for twice as long after each further row, so that useless spinning costs next to nothing.
// A yield that lasts is such a row by itself, even if the peer has answered meanwhile: others want the processor, each
// yield hands them a whole slice of some milliseconds, and a sleeper that is woken comes before them.
const (
	lookSpin   = 4 * time.Microsecond
	yieldSpin  = 100 * time.Microsecond
	overtaken  = 3 * yieldSpin    // for so long the processor was others'
	nowSpin    = time.Microsecond // used instead when cut short: a peer that is awake answers sooner
	trustShift = 3                // at a queue, a spin after many hits may be 2^3 times as long
	spinPause  = 8                // pauses from look to look
	maxMisses  = 4
	minSkip    = 4 // waits without a long spin
	maxSkip    = 2048
)

// Naps without raising the flag: the napper relies on another end being awake, for no longer than that.
const (
	streamNap = 50 * time.Microsecond
	minVain   = time.Millisecond
	maxVain   = 4 * time.Millisecond
)

// A stream has this many messages since the last wait, in so little time each.
const (
	streamLength = 64
	streamPace   = 2 * time.Microsecond
)

// Waiter is how one end waits on a bell. It belongs to one goroutine.
//
// Where several may wait, waking one is enough as long as it does the work. So the woken waiter must set the flag that the ring cleared:
//
//   - A waiter that succeeds raises the flag at once: it may now be busy for a while, or have put its last
//     message and never come back, and then the others would sleep through a queue that has room.
//   - A waiter that was woken in vain, because another end was faster, sleeps for a short while without raising the
//     flag, and then as usual.
//   - A consumer of a stream that has emptied the queue lets it fill for a moment, without raising the flag.
//
// If the woken waiter is killed or slow, the others check for themselves when their nap is over.
type Waiter struct {
	bell  *Bell
	spins bool      // spinning is allowed
	hits  int       // spins in a row that helped
	miss  int       // spins in a row that were for nothing
	skip  int       // waits to go without a spin
	row   int       // waits to skip after the next row of misses
	Moved int       // messages since the last sleep began
	since time.Time // when that was
	Worth int       // messages for which the queue is worth a nap that lets it fill; 0: the waiter produces
	dozes bool      // the last sleep was ended by a ring
}

// NewWaiter returns a waiter of one end, that spins.
func NewWaiter(b *Bell) Waiter {
	w := Waiter{bell: b}
	w.SetSpin(true)
	return w
}

// SetSpin says whether to spin at all.
func (w *Waiter) SetSpin(on bool) {
	w.spins = on && runtime.NumCPU() > 1
	w.miss, w.skip, w.row = 0, 0, minSkip
}

// Wait repeats an attempt until it succeeds, which it reports, or gives up, or the timeout is over; a negative timeout never is.
func (w *Waiter) Wait(timeout time.Duration, attempt, giveUp func() bool) bool {
	if timeout == 0 {
		return false
	}
	now := time.Now()
	if w.spinFrom(now, attempt) {
		return true
	}
	fills := w.fills(now.Sub(w.since))
	w.Moved, w.since = 0, now
	return w.sleepUntil(after(now, timeout), fills, attempt, giveUp)
}

// fills reports whether a nap is worth taking after the time since the last sleep began: messages come in a stream,
// and no faster than that as many as are worth it will come within two naps, which is what one takes if the processor
// falls asleep meanwhile. Otherwise the producers would find the queue full.
func (w *Waiter) fills(elapsed time.Duration) bool {
	if w.Moved < streamLength || elapsed >= time.Duration(w.Moved)*streamPace {
		return false
	}
	return 2*streamNap*time.Duration(w.Moved) < time.Duration(w.Worth)*elapsed
}

func (w *Waiter) spinFrom(start time.Time, attempt func() bool) bool {
	if !w.spins {
		return false
	}
	limit, counts := yieldSpin, true
	switch {
	case w.skip > 0 && w.bell.many:
		w.skip--
		return false
	case w.skip > 0:
		w.skip--
		limit, counts = nowSpin, false
	case w.bell.many:
		limit = lookSpin << min(w.hits, trustShift)
	}
	for spent := time.Duration(0); spent < limit; spent = time.Since(start) {
		if spent < lookSpin || w.bell.many {
			pause(spinPause)
		} else {
			shm.Yield()
		}
		if attempt() {
			if w.hits++; !w.bell.many && time.Since(start) > overtaken {
				w.sleepNext()
				return true
			}
			w.miss, w.skip, w.row = 0, 0, minSkip
			return true
		}
	}
	w.hits = 0
	if !counts {
		return false
	}
	if w.miss++; w.miss == maxMisses || time.Since(start) > overtaken {
		w.sleepNext()
	}
	return false
}

// sleepNext cuts the spins of the next waits short.
func (w *Waiter) sleepNext() {
	w.miss, w.skip, w.row = 0, w.row, min(2*w.row, maxSkip)
}

func (w *Waiter) sleepUntil(end deadline, fills bool, attempt, giveUp func() bool) bool {
	quiet, vain, rung := time.Duration(0), minVain, false
	if fills {
		quiet, w.dozes = streamNap, true
	}
	for {
		seen, ok := w.bell.word.Load(), true
		if quiet == 0 {
			seen, ok = w.bell.arm()
		}
		done := attempt()
		left := end.left()
		if done || left <= 0 || giveUp() {
			if rung {
				w.bell.arm()
			}
			return done
		}
		if quiet > 0 {
			left = min(left, quiet)
		}
		woken, loud := ok && w.bell.sleep(seen, left, w.dozes), quiet == 0
		quiet = 0
		if woken && w.bell.many {
			quiet, vain, rung = vain, min(2*vain, maxVain), true
		}
		w.dozes = woken || w.dozes && !loud
	}
}

// deadline is a moment on the monotonic clock; the zero value is never.
type deadline struct{ at time.Time }

// after returns the moment when a timeout ends that begins now; negative: never.
func after(now time.Time, timeout time.Duration) deadline {
	if timeout < 0 {
		return deadline{}
	}
	return deadline{now.Add(timeout)}
}

// left returns how much time is left, a nap if it never ends.
func (d deadline) left() time.Duration {
	if d.at.IsZero() {
		return nap
	}
	return time.Until(d.at)
}

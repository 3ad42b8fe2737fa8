package ring

import (
	"runtime"
	"time"

	"github.com/rlhost/rlhost/core/shm"
)

// Spinning saves the two switches of a sleep, and on virtual machines the tens of microseconds that a processor that has
// gone idle takes to come back. It first looks again and again, for a peer that runs on another processor and answers at
// once; then it yields the processor between looks, so that a peer that shares it runs without
// having been asleep. Only trying shows whether the peer answers quickly. After many misses in a row the spins are cut
// short for some time, and for twice as long after each further row, so that useless spinning costs next to nothing.
// A yield that lasts is such a row by itself, even if the peer has answered meanwhile: others want the processor, each
// yield hands them a whole slice of some milliseconds, and a sleeper that is woken comes before them.
const (
	lookSpin  = 4 * time.Microsecond
	yieldSpin = 100 * time.Microsecond
	overtaken = 3 * yieldSpin    // for so long the processor was others'
	nowSpin   = time.Microsecond // used instead when cut short: a peer that is awake answers sooner
	spinPause = 8                // pauses from look to look
	maxMisses = 4
	minSkip   = 4 // waits without a long spin
	maxSkip   = 2048
)

// waiter is how one end waits on a bell. It belongs to one goroutine.
type waiter struct {
	bell  *bell
	spins bool // spinning is allowed
	miss  int  // spins in a row that were for nothing
	skip  int  // waits to go without a spin
	row   int  // waits to skip after the next row of misses
}

// newWaiter returns a waiter of one end, that spins.
func newWaiter(b *bell) waiter {
	w := waiter{bell: b}
	w.setSpin(true)
	return w
}

// setSpin says whether to spin at all.
func (w *waiter) setSpin(on bool) {
	w.spins = on && runtime.NumCPU() > 1
	w.miss, w.skip, w.row = 0, 0, minSkip
}

// wait repeats an attempt until it succeeds, which it reports, or gives up, or the timeout is over; a negative timeout never is.
func (w *waiter) wait(timeout time.Duration, attempt, giveUp func() bool) bool {
	if timeout == 0 {
		return false
	}
	now := time.Now()
	if w.spinFrom(now, attempt) {
		return true
	}
	return w.sleepUntil(after(now, timeout), attempt, giveUp)
}

func (w *waiter) spinFrom(start time.Time, attempt func() bool) bool {
	if !w.spins {
		return false
	}
	limit, counts := yieldSpin, true
	if w.skip > 0 {
		w.skip--
		limit, counts = nowSpin, false
	}
	for spent := time.Duration(0); spent < limit; spent = time.Since(start) {
		if spent < lookSpin {
			pause(spinPause)
		} else {
			shm.Yield()
		}
		if attempt() {
			if time.Since(start) > overtaken {
				w.sleepNext()
				return true
			}
			w.miss, w.skip, w.row = 0, 0, minSkip
			return true
		}
	}
	if !counts {
		return false
	}
	if w.miss++; w.miss == maxMisses || time.Since(start) > overtaken {
		w.sleepNext()
	}
	return false
}

// sleepNext cuts the spins of the next waits short.
func (w *waiter) sleepNext() {
	w.miss, w.skip, w.row = 0, w.row, min(2*w.row, maxSkip)
}

func (w *waiter) sleepUntil(end deadline, attempt, giveUp func() bool) bool {
	for {
		seen, ok := w.bell.arm()
		done := attempt()
		left := end.left()
		if done || left <= 0 || giveUp() {
			return done
		}
		if ok {
			w.bell.sleep(seen, left)
		}
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

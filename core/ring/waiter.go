package ring

import (
	"runtime"
	"time"
)

// Lengths of spins. Spinning saves the two switches of a sleep if the peer runs on another processor and answers
// soon, and takes time from it otherwise.
const (
	maxSpin   = 4 * time.Microsecond
	minSpin   = 250 * time.Nanosecond // below it there is none
	spinPause = 8                     // pauses from look to look
	probe     = 32                    // waits without a spin until one is tried again
)

// Naps without raising the flag: whoever takes one relies on another who is awake, for no longer than that.
const (
	streamNap = 50 * time.Microsecond
	minVain   = time.Millisecond
	maxVain   = 4 * time.Millisecond
)

// What a stream is: this many messages since the last wait, in so little time each.
const (
	streamLength = 64
	streamPace   = 2 * time.Microsecond
)

// waiter is how one end waits on a bell. It belongs to one goroutine.
//
// Where several may wait, waking one is enough as long as that one does the work. So whoever is woken owes the others
// the flag which the ring took:
//
//   - One who finds what it waited for raises the flag at once, because it may now be busy for a while; but not in
//     the middle of a stream, where it will be back soon, and raises the flag when it goes to sleep itself. Then one
//     end serves the stream and the others sleep on.
//   - One who was woken in vain, because somebody who was awake was faster, sleeps for a short while without raising
//     the flag, and then as usual.
//   - One who consumes a stream and has emptied the queue lets it fill for a moment, without raising the flag.
//
// If a debtor dies, or is not back soon after all, the others look for themselves when their nap is over.
type waiter struct {
	bell  *bell
	spin  time.Duration // of the next wait: twice as long after one that helped, half as long after one that did not
	limit time.Duration // 0: never spin
	idle  int           // waits since the last spin
	moved int           // messages since the last wait
	since time.Time     // end of the last wait
	fills bool          // the queue is worth waiting for until it fills: the waiter consumes
}

func newWaiter(b *bell) waiter {
	w := waiter{bell: b}
	w.setSpin(true)
	return w
}

// setSpin says whether to spin at all.
func (w *waiter) setSpin(on bool) {
	w.limit = 0
	if on && runtime.NumCPU() > 1 {
		w.limit = maxSpin
	}
	w.spin = w.limit
}

// wait repeats an attempt until it succeeds, which it reports, or gives up, or the timeout is over; a negative one
// never is.
func (w *waiter) wait(timeout time.Duration, attempt, giveUp func() bool) bool {
	if timeout == 0 {
		return false
	}
	now := time.Now()
	if w.spinFrom(now, attempt) {
		return true
	}
	stream := w.bell.many && w.moved >= streamLength && now.Sub(w.since) < time.Duration(w.moved)*streamPace
	w.moved = 0
	done := w.sleepUntil(after(now, timeout), stream, attempt, giveUp)
	w.since = time.Now()
	return done
}

func (w *waiter) spinFrom(start time.Time, attempt func() bool) bool {
	if w.spin == 0 {
		if w.idle++; w.idle < probe || w.limit == 0 {
			return false
		}
		w.idle, w.spin = 0, w.limit
	}
	for time.Since(start) < w.spin {
		pause(spinPause)
		if attempt() {
			w.spin = min(2*w.spin, w.limit)
			return true
		}
	}
	if w.spin /= 2; w.spin < minSpin {
		w.spin = 0
	}
	return false
}

func (w *waiter) sleepUntil(end deadline, stream bool, attempt, giveUp func() bool) bool {
	quiet, vain, rung := time.Duration(0), minVain, false
	if stream && w.fills {
		quiet = streamNap
	}
	for {
		seen, ok := w.bell.word.Load(), true
		if quiet == 0 {
			seen, ok = w.bell.arm()
		}
		done := attempt()
		left := end.left()
		if done || left <= 0 || giveUp() {
			if rung && !(stream && done) {
				w.bell.arm()
			}
			return done
		}
		if quiet > 0 {
			left = min(left, quiet)
		}
		quiet = 0
		if ok && w.bell.sleep(seen, left) && w.bell.many {
			quiet, vain, rung = vain, min(2*vain, maxVain), true
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

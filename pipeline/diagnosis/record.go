package diagnosis

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

const (
	// holdTime is how long a process may hold a trajectory before status reports it.
	holdTime = 30 * time.Second
	// stallTime is how long messages may wait for an instance that takes none. An instance that was slower before
	// gets a multiple of its slowest time.
	stallTime  = 5 * time.Second
	stallTimes = 3
)

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }

// Held is which trajectories are held, and since when they have been seen so.
type Held struct {
	arena string // of the oldest
	since map[hostabi.Handle]time.Time
}

// Look records the blocks held now. each calls its argument with every one.
func (x *Held) Look(now time.Time, each func(fn func(a *arena.Arena, h hostabi.Handle))) {
	before := x.since
	*x = Held{}
	var oldest time.Time
	each(func(a *arena.Arena, h hostabi.Handle) {
		since, known := before[h]
		if !known {
			since = now
		}
		if x.since == nil {
			x.since = map[hostabi.Handle]time.Time{}
		}
		if x.since[h] = since; oldest.IsZero() || since.Before(oldest) {
			oldest, x.arena = since, a.Name()
		}
	})
}

// age returns for how long the oldest has been held.
func (x *Held) age(now time.Time) (oldest time.Duration) {
	for _, since := range x.since {
		oldest = max(oldest, now.Sub(since))
	}
	return oldest
}

// text describes it for people.
func (x *Held) text(now time.Time) string {
	s := ""
	if len(x.since) > 1 {
		s = "s"
	}
	return fmt.Sprintf("%d block%s of %s, the oldest for %s", len(x.since), s, x.arena, seconds(x.age(now)))
}

// Record keeps the observations of one instance.
type Record struct {
	TookAt  time.Time // when it was last seen to have taken a message
	Rate    *stat.Rate
	Queued  int // messages for it
	Depth   int // room for them
	Process component.Process
	Held    Held // blocks that it has leased, or that its process holds

	Swallowed uint64    // trajectories that it has taken since it last sent one on
	SentAt    time.Time // when it last did, or was first seen

	taken    uint64
	waiting  time.Time     // since when messages wait that it does not take; zero if none do
	sent, at uint64        // how many it has sent on, and how many it had taken when it was last seen to
	slowest  time.Duration // longest that messages have waited so
}

// Note keeps account of how long messages wait for the instance or in its process: taken is how many it has taken so
// far, queued how many wait.
func (r *Record) Note(now time.Time, taken uint64, queued int, paused bool) {
	if taken != r.taken || queued == 0 || paused {
		if !r.waiting.IsZero() && !paused {
			r.slowest = max(r.slowest, now.Sub(r.waiting))
		}
		r.waiting = time.Time{}
	}
	if taken != r.taken {
		r.taken, r.TookAt = taken, now
	}
	if queued > 0 && !paused && r.waiting.IsZero() {
		r.waiting = now
	}
}

// Renew notes that another version replaces the instance: it is not to blame for earlier waits.
func (r *Record) Renew(now time.Time) { r.TookAt, r.SentAt, r.waiting = now, now, time.Time{} }

// Pass keeps account of trajectories that the instance has taken and sent on so far.
func (r *Record) Pass(now time.Time, taken, sent uint64) {
	if sent != r.sent || r.SentAt.IsZero() {
		r.sent, r.at, r.SentAt = sent, taken, now
	}
	r.Swallowed = taken - min(r.at, taken)
}

// Stalled returns for how long messages have waited, and whether that is too long.
func (r *Record) Stalled(now time.Time) (d time.Duration, yes bool) {
	if r.waiting.IsZero() {
		return 0, false
	}
	d = now.Sub(r.waiting)
	return d, d > max(stallTime, stallTimes*r.slowest)
}

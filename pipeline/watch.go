package pipeline

import (
	"fmt"
	"github.com/rlhost/rlhost/core/component"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/loops"
)

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }

// holdTime is how long a process may hold a trajectory before status reports it.
const holdTime = 30 * time.Second

// held is which trajectories are held, and since when they have been seen so.
type held struct {
	arena string // of the oldest
	since map[hostabi.Handle]time.Time
}

// look records what is held now. each calls its argument with every held block.
func (x *held) look(now time.Time, each func(fn func(a *arena.Arena, h hostabi.Handle))) {
	before := x.since
	*x = held{}
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
func (x *held) age(now time.Time) (oldest time.Duration) {
	for _, since := range x.since {
		oldest = max(oldest, now.Sub(since))
	}
	return oldest
}

// text tells it for people.
func (x *held) text(now time.Time) string {
	s := ""
	if len(x.since) > 1 {
		s = "s"
	}
	return fmt.Sprintf("%d block%s of %s, the oldest for %s", len(x.since), s, x.arena, seconds(x.age(now)))
}

const (
	lookEvery  = 500 * time.Millisecond // how often the watch reads the counters
	rateWindow = 10 * time.Second       // window of the rates
	// stallTime is how long messages may wait for an instance that takes none. One that was slower before gets a
	// multiple of its slowest time.
	stallTime  = 5 * time.Second
	stallTimes = 3
)

// watch reads the counters of a run periodically, so that status can show rates and stalled instances. It only pings
// the loops.
type watch struct {
	*running
	ending  *ending
	pauses  *pauses
	changes *changeLock

	guard   sync.Mutex
	records map[instanceKey]*record
	own     held // by this process
	pings   map[*loops.Loop]*ping
}

// record is what has been observed of one place.
type record struct {
	taken   uint64
	tookAt  time.Time     // when it was last seen to have taken a message
	waiting time.Time     // since when messages wait that it does not take; zero if none do
	slowest time.Duration // longest that messages have waited so
	rate    *stat.Rate
	queued  int
	depth   int
	proc    component.Process
	held    held
}

// ping is a pending ping of a loop.
type ping struct {
	sent     time.Time
	answered atomic.Bool
}

// begin watches until end is called.
func (w *watch) begin() (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	w.look(time.Now())
	running.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				w.look(now)
			case <-stop:
				return
			}
		}
	})
	return func() {
		close(stop)
		running.Wait()
	}
}

// look reads the counters once.
func (w *watch) look(now time.Time) {
	w.guard.Lock()
	defer w.guard.Unlock()
	if w.records == nil {
		w.records, w.pings = map[instanceKey]*record{}, map[*loops.Loop]*ping{}
	}
	a := w.now()
	present := map[instanceKey]bool{}
	live := map[*loops.Loop]bool{}
	for i := range a.members {
		m := &a.members[i]
		name := instanceKey{m.of.Name, m.index}
		present[name], live[m.loop] = true, true
		r := w.records[name]
		if r == nil {
			r = &record{tookAt: now, rate: stat.NewRate(rateWindow)}
			w.records[name] = r
		}
		r.look(m, now, w.pauses.has(m.instance))
		if r.proc.Holder > 0 {
			r.held.look(now, w.heldBy(r.proc.Holder))
		} else {
			r.held = held{}
		}
	}
	w.own.look(now, w.heldBy(hostabi.ArenaHost))
	for name := range w.records {
		if !present[name] {
			delete(w.records, name)
		}
	}
	w.ping(live, now)
}

// ping pings the loops.
func (w *watch) ping(live map[*loops.Loop]bool, now time.Time) {
	for l := range w.pings {
		if !live[l] {
			delete(w.pings, l)
		}
	}
	for l := range live {
		if old := w.pings[l]; old != nil && !old.answered.Load() {
			continue
		}
		g := &ping{sent: now}
		w.pings[l] = g
		l.Own.Control(func(*hostabi.Message) { g.answered.Store(true) }, hostabi.Message{})
	}
}

// silent returns for how long a loop has not answered.
func (w *watch) silent(l *loops.Loop, now time.Time) time.Duration {
	if g := w.pings[l]; g != nil && !g.answered.Load() {
		return now.Sub(g.sent)
	}
	return 0
}

// look reads the counters of one instance.
func (r *record) look(m *member, now time.Time, paused bool) {
	taken, queued, depth := m.intake()
	r.queued, r.depth, r.proc = queued, depth, m.process()
	r.note(now, taken, queued+r.proc.Unfinished, paused)
	value, _ := m.done(taken)
	r.rate.Observe(now, float64(value))
}

// note keeps account of how long messages wait, for the instance or in its process.
func (r *record) note(now time.Time, taken uint64, queued int, paused bool) {
	if taken != r.taken || queued == 0 || paused {
		if !r.waiting.IsZero() && !paused {
			r.slowest = max(r.slowest, now.Sub(r.waiting))
		}
		r.waiting = time.Time{}
	}
	if taken != r.taken {
		r.taken, r.tookAt = taken, now
	}
	if queued > 0 && !paused && r.waiting.IsZero() {
		r.waiting = now
	}
}

// stalled returns for how long messages have waited too long.
func (r *record) stalled(now time.Time) (d time.Duration, yes bool) {
	if r.waiting.IsZero() {
		return 0, false
	}
	d = now.Sub(r.waiting)
	return d, d > max(stallTime, stallTimes*r.slowest)
}

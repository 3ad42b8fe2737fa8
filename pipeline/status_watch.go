package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

const (
	lookEvery  = 500 * time.Millisecond // how often the watch reads the counters
	rateWindow = 10 * time.Second       // that rates are of
	// stallTime is how long messages may wait for an instance that takes none. One that has been slower than that before
	// gets as many times as long as it was.
	stallTime  = 5 * time.Second
	stallTimes = 3
)

// watch reads the counters of a run now and then, so that status can tell rates and who stands still. It asks nothing
// of the loops but a sign of life.
type watch struct {
	mu    sync.Mutex
	seats map[seatName]*record
	own   held // by this process
	pings map[*runningLoop]*ping
}

// seatName tells a place in the graph, whoever has it.
type seatName struct {
	component string
	index     int
}

// record is what has been seen of one place.
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

// ping is a sign of life that a loop was asked for.
type ping struct {
	sent     time.Time
	answered atomic.Bool
}

// begin watches until the function that it returns is called.
func (w *watch) begin(p *Pipeline) (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	w.look(p, time.Now())
	running.Go(func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case now := <-tick.C:
				w.look(p, now)
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
func (w *watch) look(p *Pipeline, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seats == nil {
		w.seats, w.pings = map[seatName]*record{}, map[*runningLoop]*ping{}
	}
	a := p.now()
	present := map[seatName]bool{}
	loops := map[*runningLoop]bool{}
	for i := range a.members {
		m := &a.members[i]
		name := seatName{m.of.Name, m.index}
		present[name], loops[m.loop] = true, true
		r := w.seats[name]
		if r == nil {
			r = &record{tookAt: now, rate: stat.NewRate(rateWindow)}
			w.seats[name] = r
		}
		r.look(m, now, p.pauses.has(m.instance))
		if r.proc.Holder > 0 {
			r.held.look(now, p.heldBy(r.proc.Holder))
		} else {
			r.held = held{}
		}
	}
	w.own.look(now, p.heldBy(hostabi.ArenaHost))
	for name := range w.seats {
		if !present[name] {
			delete(w.seats, name)
		}
	}
	w.ping(loops, now)
}

// ping asks the loops for a sign of life.
func (w *watch) ping(loops map[*runningLoop]bool, now time.Time) {
	for l := range w.pings {
		if !loops[l] {
			delete(w.pings, l)
		}
	}
	for l := range loops {
		if old := w.pings[l]; old != nil && !old.answered.Load() {
			continue
		}
		g := &ping{sent: now}
		w.pings[l] = g
		l.own.Control(func(*hostabi.Message) { g.answered.Store(true) }, hostabi.Message{})
	}
}

// silent returns for how long a loop has not answered.
func (w *watch) silent(l *runningLoop, now time.Time) time.Duration {
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

// intake returns how many messages an instance has taken, how many wait for it, and how much room there is for such.
func (m *member) intake() (taken uint64, queued, depth int) {
	for _, c := range m.incoming() {
		s := c.Stats()
		taken += s.Delivered
		queued += s.Queued
		depth += c.Options().Depth
	}
	if len(m.of.Manifest.Slots) == 0 { // it takes nothing: what it gives tells that it goes on
		for _, port := range m.of.Manifest.Signals {
			taken += m.host.Signal(port.Name).Stats().Emitted
		}
	}
	return taken, queued, depth
}

// incoming returns the connections to the slots of an instance.
func (m *member) incoming() (list []*bus.Connection) {
	for _, port := range m.of.Manifest.Slots {
		if slot := m.host.BoundSlot(port.Name); slot != nil {
			list = append(list, slot.Connections()...)
		}
	}
	return list
}

// done returns how much an instance has done, and in what unit: env steps where it runs environments, which it hands
// over in trajectories, else messages.
func (m *member) done(taken uint64) (n uint64, unit string) {
	if m.of.Flow.BlockRows == 0 {
		return taken, "messages"
	}
	for _, port := range m.of.Manifest.Signals {
		if port.Payload == payloadTrajectory {
			n += m.host.Signal(port.Name).Stats().Emitted * uint64(m.of.Flow.BlockRows)
		}
	}
	return n, "env steps"
}

// payloadTrajectory is the payload of full blocks of env steps.
const payloadTrajectory = "trajectory"

package pipeline

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/diagnosis"
	"github.com/rlhost/rlhost/pipeline/loops"
)

const (
	lookEvery  = 500 * time.Millisecond // how often the watch reads the counters
	rateWindow = 10 * time.Second       // window of the rates
)

// watch reads the counters of a run periodically, so that status can show rates and stalled instances. It only pings
// the loops.
type watch struct {
	*running
	ending  *ending
	pauses  *pauses
	changes *changeLock
	looked  func() // called after each look

	guard   sync.Mutex
	of      *assembly // at the last look
	records map[instanceKey]*diagnosis.Record
	seen    map[instanceKey]*instance // that the records are of
	own     diagnosis.Held            // blocks held by this process
	debts   debts
	owing   []debt // as of the last look
	late    []debt // overdue, and not reported yet
	pings   map[*loops.Loop]*ping
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
				w.looked()
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
		w.records, w.seen, w.pings = map[instanceKey]*diagnosis.Record{}, map[instanceKey]*instance{}, map[*loops.Loop]*ping{}
	}
	a := w.now()
	live := map[*loops.Loop]bool{}
	for i := range a.members {
		m := &a.members[i]
		name := instanceKey{m.of.Name, m.index}
		live[m.loop] = true
		r := w.records[name]
		if r == nil {
			r = &diagnosis.Record{TookAt: now, Rate: stat.NewRate(rateWindow)}
			w.records[name] = r
		} else if w.seen[name] != m.instance {
			r.Renew(now)
		}
		w.seen[name] = m.instance
		record(r, m, now, w.pauses.has(m.instance))
		switch holder, tells := m.component.(component.Holder); {
		case r.Process.Holder > 0:
			r.Held.Look(now, w.heldBy(r.Process.Holder))
		case tells:
			m.unlessStopped(func() { r.Held.Look(now, holder.Holds) })
		default:
			r.Held = diagnosis.Held{}
		}
	}
	w.own.Look(now, w.heldBy(hostabi.ArenaHost))
	replacing := w.changes.replacing()
	w.owing = w.debts.look(now, a, func(m *member) bool { return w.untimed(m, replacing) })
	w.late = append(w.late, w.debts.overdue(now, w.owing)...)
	if a != w.of {
		w.of = a
		w.forget()
	}
	w.ping(live, now)
}

// forget drops the records of places that the graph has no more.
func (w *watch) forget() {
	for name := range w.records {
		if w.of.member(name.component, name.index) == nil {
			delete(w.records, name)
			delete(w.seen, name)
		}
	}
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

// record records the counters of one instance.
func record(r *diagnosis.Record, m *member, now time.Time, paused bool) {
	taken, queued, depth := m.intake()
	r.Queued, r.Depth, r.Process = queued, depth, m.process()
	r.Note(now, taken, queued+r.Process.Unfinished, paused)
	value, _ := m.done(taken)
	r.Rate.Observe(now, float64(value))
	passed, sent := m.passes()
	r.Pass(now, passed, sent)
}

// snapshot returns the present state of the run.
func (w *watch) snapshot(now time.Time) *statusSnapshot {
	w.look(now)
	a := w.now()
	s := &statusSnapshot{Run: &diagnosis.Run{At: now, Over: w.ending.state(), Begun: w.ending.started.Load()}, of: a}
	replacing := w.changes.replacing()
	w.guard.Lock()
	defer w.guard.Unlock()
	for i := range a.members {
		m := &a.members[i]
		paused := w.pauses.has(m.instance)
		x := &diagnosis.Instance{Name: m.name, Loop: m.loop.Name(), LoopEnded: m.loop.Ended(), Paused: paused, Fault: m.live.failed(),
			Blocked: m.host.Receiver.Paused() && !paused, Replaced: replacing[m.instance], Silent: w.silent(m.loop, now)}
		if r := w.records[instanceKey{m.of.Name, m.index}]; r != nil {
			x.Record, x.PerSecond = *r, r.Rate.PerSecond(rateWindow)
		}
		x.Debts, x.Learns = debtsOf(w.owing, m, now), m.learns()
		if d, yes := x.Record.Stalled(now); yes {
			x.Stalled = d
		}
		s.Instances = append(s.Instances, x)
	}
	s.Held = w.own
	s.connect()
	s.Judge()
	return s
}

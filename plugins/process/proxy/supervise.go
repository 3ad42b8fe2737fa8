package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

const (
	quiesceLimit = 10 * time.Second // for components that work on blocks that a dead process had on loan
	quiesceStep  = time.Millisecond
)

// supervise watches over the lives of the process until Stop, or until there were too many.
func (x *proxy) supervise(l *session) {
	defer close(x.ended)
	var budget spawn.Restarts
	for {
		why, alive := x.watch(l)
		if alive {
			return // Stop does the rest
		}
		again := x.recover(l, why)
		if x.hasFailed() {
			x.meters.lost.Add(x.give(again))
			x.setState(component.ProcessFailed)
			return // it has said why, and the run ends
		}
		next, err := x.next(l, &budget)
		if err != nil {
			x.meters.lost.Add(x.give(again))
			x.setState(component.ProcessFailed)
			if !errors.Is(err, errStopping) {
				x.h.Fail(err)
			}
			return
		}
		l = next
		x.resume(l, again)
	}
}

// watch waits until the process has died, and kills it if it stalls or breaks the protocol. alive: the proxy is
// being stopped.
func (x *proxy) watch(l *session) (why string, alive bool) {
	p := l.process
	stall := newStallWatch(l)
	ticker := time.NewTicker(stall.every)
	defer ticker.Stop()
	for {
		select {
		case <-x.quit:
			return "", true
		case <-p.Died():
			return why, false
		case err := <-l.broken:
			if why == "" {
				why = fmt.Sprintf("killed: it broke the protocol: %v", err)
			}
			p.Kill()
		case <-ticker.C:
			if waits := stall.check(); waits != "" && why == "" {
				why = fmt.Sprintf("killed: no sign of life for %v while %s", p.Program.Stall, waits)
				p.Abort()
			}
		}
	}
}

// lay puts a dead process to rest: what it had sent counts, what it held is taken back. It returns the messages
// that it had not finished with.
func (x *proxy) recover(l *session, why string) []link.Pending {
	x.setState(component.ProcessRestarting)
	l.wire.LastFrames()
	l.link.Stop()
	fault := l.link.Drain()
	x.quiesce(l)
	x.rest()
	stats := l.link.Stats()
	again := l.link.Unfinished()
	l.unregister()
	swept, held, err := x.sweep(l)
	again = x.stillMeant(again)
	x.purge()
	lost := x.loss(l, stats.Acked, held)
	x.meters.lost.Add(lost)
	attrs := []any{"process", l.describeEnd(), "held_blocks", swept.Write + swept.Live + swept.Zombie,
		"again_messages", len(again), "lost_messages", lost}
	if swept.Mended > 0 {
		attrs = append(attrs, "mended_blocks", swept.Mended)
	}
	if why != "" {
		attrs = append(attrs, "why", why)
	}
	if err := errors.Join(fault, err); err != nil {
		attrs = append(attrs, "err", err)
	}
	x.h.Log.Error("plugin process ended", attrs...)
	l.release()
	x.meters.deaths.Inc()
	return again
}

// sweep takes back what a dead process held. held counts the blocks of others among them that it read; those of its
// own arenas may be on messages that have arrived.
func (x *proxy) sweep(l *session) (swept arena.Swept, held int, err error) {
	x.h.Arenas.Each(func(a *arena.Arena) {
		if !x.owns(a.ID()) {
			s, _ := a.Sweep(l.holder) // what is wrong will be wrong below
			held += s.Live + s.Zombie
		}
	})
	if swept, err = x.h.Arenas.Sweep(l.holder); err == nil {
		l.holder = 0
	}
	swept.Live += held
	return swept, held, err
}

// quiesce waits for components of the host that work on blocks that the process had on loan: the blocks must not be
// anybody else's before.
func (x *proxy) quiesce(l *session) {
	for end := time.Now().Add(quiesceLimit); l.asking() > 0 && time.Now().Before(end); {
		select {
		case <-x.quit:
			return
		case <-time.After(quiesceStep):
		}
	}
}

// rest keeps messages in the connections while there is no process.
func (x *proxy) rest() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.rested {
		x.rested = true
		x.h.Receiver.Pause()
	}
}

// stillMeant drops messages about blocks on loan whose loan has ended: answers to the dead process.
func (x *proxy) stillMeant(list []link.Pending) []link.Pending {
	kept := list[:0]
	for _, p := range list {
		if p.Message.Handle != 0 && !p.Claimed && !x.onLoan(p.Message.Handle) {
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// loss is how many messages are lost with a process: of one that goes on from a saved state, those that it has
// finished with since; of any other, those whose blocks it still held.
func (x *proxy) loss(l *session, finished uint64, held int) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.saved; s != nil {
		if s.from == l {
			return finished - min(s.finished, finished)
		}
		return finished
	}
	return uint64(held)
}

// next starts the successor of a process, after a pause that grows with each failure.
func (x *proxy) next(l *session, budget *spawn.Restarts) (*session, error) {
	p := &x.program
	budget.Lived(p, time.Since(l.since))
	var newest error // what the newest attempt ended with
	for {
		pause, ok := budget.Spend(p)
		if !ok {
			return nil, p.Spent(l.describeEnd(), newest)
		}
		select {
		case <-x.quit:
			return nil, errStopping
		case <-time.After(pause):
		}
		x.countRestart()
		next, err := x.startSession()
		if err == nil {
			return next, nil
		}
		if errors.Is(err, errStopping) {
			return nil, err
		}
		x.h.Log.Error("plugin was not started again", "err", err)
		newest = err
	}
}

// resume lets the successor go on where the newest state is.
func (x *proxy) resume(l *session, again []link.Pending) {
	x.mu.Lock()
	s := x.saved
	x.mu.Unlock()
	from := "the beginning"
	if s != nil {
		from = fmt.Sprintf("the state of %v ago", time.Since(s.at).Round(time.Millisecond))
		if err := l.giveState(s.bytes); err != nil {
			from = "the beginning"
			x.h.Log.Error("the plugin does not take its state", "err", err)
		}
		x.keepState(&saved{bytes: s.bytes, at: s.at, from: l})
	}
	x.h.Log.Warn("plugin started again", "pid", l.process.PID(), "from", from)
	x.begin(l, again)
}

// give releases the claims of messages that nobody will get, and returns how many those are.
func (x *proxy) give(list []link.Pending) uint64 {
	x.mu.Lock()
	list = append(list, x.waiting...)
	x.waiting = nil
	x.mu.Unlock()
	for i := range list {
		if list[i].Claimed {
			x.release(list[i].Message.Handle)
		}
	}
	return uint64(len(list))
}

// finish is Stop: the process ends, by itself if it does so in time, and nothing is left of it.
func (x *proxy) finish() error {
	close(x.quit)
	defer x.asking.Wait()
	if x.link.Load() == nil {
		return nil // it was never started
	}
	x.setState(component.ProcessStopping)
	<-x.ended
	x.mu.Lock()
	l := x.session
	x.mu.Unlock()
	var err error
	if l.holder != 0 { // else it is dead and released
		err = l.process.Stop(x.runtime.Grace())
		switch {
		case errors.Is(err, spawn.ErrDied):
			x.meters.deaths.Inc()
			err = nil // it has nothing left to say
		case errors.Is(err, spawn.ErrGrace):
			x.h.Log.Warn("plugin was killed: it did not stop in time", "grace", x.runtime.Grace())
			err = nil
		}
		l.wire.LastFrames()
		l.link.Stop()
		_ = l.link.Drain() // its last words concern nobody
		x.give(l.link.Unfinished())
		l.release()
	}
	x.give(nil)
	x.forget()
	x.mu.Lock()
	rested := x.rested
	x.rested = false
	x.mu.Unlock()
	if rested {
		x.h.Receiver.Resume()
	}
	return err
}

// fail ends the run with an error of the component in the process, which is not started again then.
func (x *proxy) fail(err error) {
	x.mu.Lock()
	x.failed = true
	x.mu.Unlock()
	x.h.Fail(err)
}

func (x *proxy) hasFailed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

func (x *proxy) setState(state string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.state = state
}

func (x *proxy) countRestart() {
	x.meters.restarts.Inc()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.restarts++
}

// stallWatch finds a process that does nothing while work waits for it.
type stallWatch struct {
	l     *session
	every time.Duration
	limit time.Duration
	last  progress
	since time.Time
}

// progress changes whenever the process does something that the host notices.
type progress struct{ received, acked, heard uint64 }

func newStallWatch(l *session) *stallWatch {
	limit := l.process.Program.Stall
	every := time.Hour
	if limit > 0 {
		every = min(max(limit/8, 10*time.Millisecond), time.Second)
	}
	return &stallWatch{l: l, every: every, limit: limit, since: time.Now()}
}

// check returns what waits if nothing has happened for too long, else nothing.
func (w *stallWatch) check() string {
	s := w.l.link.Stats()
	now := progress{s.Received, s.Acked, w.l.heard.Load()}
	waits := w.waits(&s)
	if now != w.last || waits == "" {
		w.last, w.since = now, time.Now()
		return ""
	}
	if w.limit <= 0 || time.Since(w.since) < w.limit {
		return ""
	}
	if w.l.process.Traced() {
		w.since = time.Now()
		return ""
	}
	return waits
}

// waits says what waits for the process. While the host holds it up itself, nothing does.
func (w *stallWatch) waits(s *link.Stats) string {
	own := 0
	if s.Paused {
		own = 1
	}
	switch calls := w.l.calls.Load(); {
	case calls > 0:
		return fmt.Sprintf("%d control calls wait", calls)
	case w.l.atBoundary.Load() || w.l.x.h.Receiver.Pauses() > own || s.Available > 0:
		return ""
	case s.Unacked > 0:
		return fmt.Sprintf("%d messages wait", s.Unacked)
	case s.Open > 0:
		return fmt.Sprintf("%d requests wait for their answers", s.Open)
	}
	return ""
}

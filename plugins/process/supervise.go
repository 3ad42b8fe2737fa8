package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/link"
)

// States of a component's process, in Status.
const (
	stateStarting   = "starting"
	stateRunning    = "running"
	stateRestarting = "restarting"
	stateStopping   = "stopping"
	stateFailed     = "failed"
)

const (
	restartWindow = 10 * time.Minute // Program.Restarts are counted in it
	quiesceLimit  = 10 * time.Second // for components that work on blocks that a dead process had on loan
	quiesceStep   = time.Millisecond
)

// backoff says how long a process that has died is not started again.
type backoff struct {
	first   time.Duration // before the first restart in a row; then twice as long each time
	longest time.Duration
	healthy time.Duration // a process that lived so long ends the row
}

func defaultBackoff() backoff {
	return backoff{first: 100 * time.Millisecond, longest: 5 * time.Second, healthy: time.Minute}
}

// supervisor replaces processes that die.
type supervisor struct {
	x     *proxy
	pause time.Duration
	dead  []time.Time // restarts within the window
}

// supervise watches over the lives of the process until Stop, or until there were too many.
func (x *proxy) supervise(l *life) {
	defer close(x.ended)
	s := &supervisor{x: x}
	for {
		why, alive := s.watch(l)
		if alive {
			return // Stop does the rest
		}
		again := x.lay(l, why)
		if x.hasFailed() {
			x.meters.lost.Add(x.give(again))
			x.setState(stateFailed)
			return // it has said why, and the run ends
		}
		next, err := s.next(l)
		if err != nil {
			x.meters.lost.Add(x.give(again))
			x.setState(stateFailed)
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
func (s *supervisor) watch(l *life) (why string, alive bool) {
	p := l.process
	stall := newStallWatch(l)
	ticker := time.NewTicker(stall.every)
	defer ticker.Stop()
	for {
		select {
		case <-s.x.quit:
			return "", true
		case <-p.died():
			return why, false
		case err := <-l.broken:
			if why == "" {
				why = fmt.Sprintf("killed: it broke the protocol: %v", err)
			}
			p.kill()
		case <-ticker.C:
			if waits := stall.check(); waits != "" && why == "" {
				why = fmt.Sprintf("killed: no sign of life for %v while %s", p.program.Stall, waits)
				p.abort()
			}
		}
	}
}

// lay puts a dead process to rest: what it had sent counts, what it held is taken back. It returns the messages
// that it had not finished with.
func (x *proxy) lay(l *life, why string) []link.Pending {
	x.setState(stateRestarting)
	l.wire.lastFrames()
	l.link.Stop()
	fault := l.link.Drain()
	x.quiesce(l)
	x.rest()
	stats := l.link.Stats()
	again := l.link.Unfinished()
	l.unwatch()
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
	l.bury()
	x.meters.deaths.Inc()
	return again
}

// sweep takes back what a dead process held. held counts the blocks of others among them that it read; those of its
// own arenas may be on messages that have arrived.
func (x *proxy) sweep(l *life) (swept arena.Swept, held int, err error) {
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
func (x *proxy) quiesce(l *life) {
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
func (x *proxy) loss(l *life, finished uint64, held int) uint64 {
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
func (s *supervisor) next(l *life) (*life, error) {
	b := s.x.runtime.backoff
	if time.Since(l.since) > b.healthy {
		s.pause = 0
	}
	var last error
	for {
		if err := s.spend(l, last); err != nil {
			return nil, err
		}
		s.pause = min(max(2*s.pause, b.first), b.longest)
		select {
		case <-s.x.quit:
			return nil, errStopping
		case <-time.After(s.pause):
		}
		s.x.countRestart()
		next, err := s.x.live()
		if err == nil {
			return next, nil
		}
		if errors.Is(err, errStopping) {
			return nil, err
		}
		s.x.h.Log.Error("plugin was not started again", "err", err)
		last = err
	}
}

// spend takes one restart out of the budget. last is what the newest attempt ended with, if it was no process.
func (s *supervisor) spend(l *life, last error) error {
	now := time.Now()
	for len(s.dead) > 0 && now.Sub(s.dead[0]) > restartWindow {
		s.dead = s.dead[1:]
	}
	p := &s.x.program
	if len(s.dead) >= p.Restarts {
		reason := fmt.Sprintf("%s, and `restarts` allows %d within %v", l.describeEnd(), max(p.Restarts, 0), restartWindow)
		if last != nil {
			reason += fmt.Sprintf("; the newest attempt: %v", last)
		}
		return &Error{Code: CodeDied, Program: p.Name, Err: errDied, Reason: reason}
	}
	s.dead = append(s.dead, now)
	return nil
}

// resume lets the successor go on where the newest state is.
func (x *proxy) resume(l *life, again []link.Pending) {
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
	x.h.Log.Warn("plugin started again", "pid", l.process.pid(), "from", from)
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
	defer x.runtime.strike(x)
	if x.link.Load() == nil {
		return nil // it was never started
	}
	x.setState(stateStopping)
	<-x.ended
	x.mu.Lock()
	l := x.life
	x.mu.Unlock()
	var err error
	if l.holder != 0 { // else it is dead and buried
		err = l.process.stop(x.runtime.grace())
		switch {
		case errors.Is(err, errDied):
			x.meters.deaths.Inc()
			err = nil // it has nothing left to say
		case errors.Is(err, errGrace):
			x.h.Log.Warn("plugin was killed: it did not stop in time", "grace", x.runtime.grace())
			err = nil
		}
		l.wire.lastFrames()
		l.link.Stop()
		_ = l.link.Drain() // its last words concern nobody
		x.give(l.link.Unfinished())
		l.bury()
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
	l     *life
	every time.Duration
	limit time.Duration
	last  progress
	since time.Time
}

// progress changes whenever the process does something that the host notices.
type progress struct{ received, acked, heard uint64 }

func newStallWatch(l *life) *stallWatch {
	limit := l.process.program.Stall
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
	if traced(w.l.process.pid()) {
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

// traced reports whether a debugger is attached to a process.
func traced(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(status, []byte("\nTracerPid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return found && string(bytes.TrimSpace(line)) != "0"
}

package proxy

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// supervise watches over the sessions until Stop, or until there were too many.
func (x *proxy) supervise(l *session) {
	defer close(x.ended)
	var budget spawn.Budget
	for {
		why, alive := x.watch(l)
		if alive {
			return // Stop does everything else
		}
		again := x.recover(l, why)
		if x.shared.hasFailed() {
			x.keepAgain(again)
			x.setState(component.ProcessFailed)
			return // it has said why, and the run ends
		}
		next, err := x.next(l, &budget)
		if err != nil {
			x.keepAgain(again)
			x.setState(component.ProcessFailed)
			if !errors.Is(err, errStopping) {
				x.shared.h.Fail(err)
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
		case <-x.shared.running.Done():
			return "", true
		case <-p.Died():
			return why, false
		case err := <-l.broken:
			if why == "" {
				why = fmt.Sprintf("killed: it broke the protocol: %v", err)
			}
			if late := (overdue{}); errors.As(err, &late) {
				why = fmt.Sprintf("killed: %v", err)
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

// next starts the successor of a process, after a pause that grows with each failure.
func (x *proxy) next(l *session, budget *spawn.Budget) (*session, error) {
	p := &x.shared.program
	budget.Lived(p, time.Since(l.since))
	var newest error // the error of the newest attempt
	for {
		pause, ok := budget.Spend(p)
		if !ok {
			return nil, budget.Spent(p, l.describeEnd(), newest)
		}
		select {
		case <-x.shared.running.Done():
			return nil, errStopping
		case <-time.After(pause):
		}
		if x.shared.hasFailed() { // its component is taken away
			return nil, errStopping
		}
		x.countRestart()
		next, err := x.shared.startSession(x.saveNow)
		if err == nil {
			return next, nil
		}
		if errors.Is(err, errStopping) {
			return nil, err
		}
		x.shared.h.Log.Error("plugin was not started again", "err", err)
		newest = err
	}
}

// begin lets a process take part: it gets its predecessor's unfinished messages, and the newest message of each slot that only wants that.
func (x *proxy) begin(l *session, again []link.Pending) {
	resent := map[int]bool{}
	for i := range again {
		resent[again[i].Port] = true
	}
	var list []link.Pending
	for i := range x.shared.slots {
		if resent[i] {
			continue // the newest is among them
		}
		if p, ok := x.shared.newest(i); ok {
			list = append(list, p)
		}
	}
	l.again = len(again) > 0
	x.shared.mu.Lock()
	l.link.Resend(append(append(list, again...), x.waiting...))
	if x.session != nil {
		x.session.current.Store(false)
	}
	x.waiting, x.session = nil, l
	l.current.Store(true)
	x.link.Store(l.link)
	x.state = component.ProcessRunning
	x.shared.mu.Unlock()
	x.tellState()
	l.link.Start()
	x.shared.h.Receiver.Control(l.run, hostabi.Message{})
	x.resumeReceiver()
}

// resume lets the successor continue from the newest state.
func (x *proxy) resume(l *session, again []link.Pending) {
	x.shared.mu.Lock()
	s := x.saved
	x.shared.mu.Unlock()
	from, back := "the beginning", x.began
	if s != nil {
		if err := l.giveState(s.bytes); err != nil {
			x.shared.h.Log.Error("the plugin does not take its state", "err", err)
		} else {
			from, back = fmt.Sprintf("the state of %v ago", time.Since(s.at).Round(time.Millisecond)), s.kept
		}
		x.keepState(&saved{bytes: s.bytes, at: s.at, from: l, kept: back})
	}
	messages := make([]hostabi.Message, len(again))
	for i := range again {
		messages[i] = again[i].Message
	}
	back(messages)
	x.shared.h.Log.Warn("plugin started again", "pid", l.process.PID(), "from", from)
	x.begin(l, again)
}

// finish is Stop: the process ends, by itself if it does so in time, and nothing is left of it.
func (x *proxy) finish() error {
	x.shared.stopAll(errStopping)
	defer x.asking.Wait()
	if x.link.Load() == nil {
		return nil // it was never started
	}
	x.setState(component.ProcessStopping)
	<-x.ended
	l := x.newestSession()
	var err error
	if l.holder != 0 { // else it is dead and released
		err = l.process.Stop(x.shared.runtime.Grace())
		switch {
		case errors.Is(err, spawn.ErrDied):
			x.shared.meters.deaths.Inc()
			err = nil // it has nothing left to say
		case errors.Is(err, spawn.ErrGrace):
			x.shared.h.Log.Warn("plugin was killed: it did not stop in time", "grace", x.shared.runtime.Grace())
			x.shared.meters.deaths.Inc() // its blocks and counts are lost as with any process that dies
			err = nil
		}
		l.wire.LastFrames()
		l.link.Stop()
		_ = l.link.Drain() // its last words do not matter
		x.releaseUndelivered(l.link.Unfinished())
		l.release()
	}
	if left := x.releaseUndelivered(nil); l.holder == 0 { // messages of a process that has died
		x.shared.meters.lost.Add(left)
	}
	x.shared.forget()
	x.resumeReceiver()
	return err
}

package pipeline

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// snapshot returns the run's status now.
func (w *watch) snapshot(now time.Time) *statusSnapshot {
	w.look(now)
	s := &statusSnapshot{watch: w, at: now, over: w.ending.state()}
	changing := w.changes.replacing()
	a := w.now()
	w.guard.Lock()
	defer w.guard.Unlock()
	for i := range a.members {
		m := &a.members[i]
		x := &seen{member: m}
		if r := w.records[instanceKey{m.of.Name, m.index}]; r != nil {
			x.record, x.perSecond = *r, r.rate.PerSecond(rateWindow)
		}
		if d, yes := x.record.stalled(now); yes {
			x.stalled = d
		}
		x.silent = w.silent(m.loop, now)
		x.blocked = m.host.Receiver.Paused() && !w.pauses.has(m.instance)
		s.instances = append(s.instances, x)
	}
	for _, x := range s.instances {
		x.state = s.stateOf(x, changing[x.instance])
	}
	s.heldHere = w.own
	s.findLinks()
	s.findHolder()
	return s
}

// holder names the longest holder of trajectories: an instance in a process, or this process, whose components
// cannot be told apart.
func (s *statusSnapshot) holder() (x *seen, text string) {
	var longest time.Duration
	for _, y := range s.instances {
		if age := y.held.age(s.at); age > max(longest, stallTime) {
			x, longest, text = y, age, y.held.text(s.at)
		}
	}
	if x == nil && s.heldHere.age(s.at) > stallTime {
		text = s.heldHere.text(s.at)
	}
	return x, text
}

// findHolder finds, where nothing progresses and no message is pending, the instance that keeps what it was given: it
// is stalled.
func (s *statusSnapshot) findHolder() {
	if s.over != "" || !s.ending.started.Load() || !s.stands() {
		return
	}
	for _, x := range s.instances {
		if x.stalled > 0 || x.state != control.Running || len(x.out) > 0 {
			return // that is the cause
		}
	}
	if x, _ := s.holder(); x != nil {
		x.state = control.Stalled
	}
}

// findLinks finds the connections between the instances.
func (s *statusSnapshot) findLinks() {
	owners := map[*bus.Signal]*seen{}
	names := map[*bus.Signal]string{}
	for _, x := range s.instances {
		for _, port := range x.of.Manifest.Signals {
			sig := x.host.Signal(port.Name)
			owners[sig], names[sig] = x, component.Qualified(x.name, port.Name)
		}
	}
	for _, to := range s.instances {
		for _, port := range to.of.Manifest.Slots {
			slot := to.host.BoundSlot(port.Name)
			if slot == nil {
				continue
			}
			for _, c := range slot.Connections() {
				if from := owners[c.Signal()]; from != nil {
					from.linkTo(to, c, names[c.Signal()], component.Qualified(to.name, port.Name))
				}
			}
		}
	}
}

func (x *seen) linkTo(to *seen, c *bus.Connection, signal, slot string) {
	n := c.Stats()
	l := &link{from: x, to: to, name: signal + " → " + slot, slot: slot, signal: signal,
		queued: n.Queued, depth: c.Options().Depth, parked: n.Parked}
	x.links = append(x.links, l)
	if l.parked > 0 || x.blocked && c.Options().Overflow == bus.Block && 2*l.queued > l.depth {
		x.out = append(x.out, l)
	}
}

// String names the link and tells how full it is.
func (l *link) String() string {
	text := fmt.Sprintf("%s is full (%d/%d", l.name, l.queued, l.depth)
	if l.parked > 0 {
		text += fmt.Sprintf(", %d more wait", l.parked)
	}
	return text + ")"
}

func (s *statusSnapshot) cause() string {
	if s.over != "" || !s.ending.started.Load() || !s.stands() {
		return ""
	}
	for _, x := range s.instances {
		if len(x.out) > 0 {
			l := s.last(x.out[0])
			return fmt.Sprintf("%s %s: %v", l.to.name, s.why(l.to), l)
		}
	}
	for _, x := range s.instances {
		if l := s.waitingAt(x); l != nil && x.stalled > 0 {
			return fmt.Sprintf("%s %s: %d of %d wait at %s", x.name, s.why(x), l.queued, l.depth, l.name)
		}
	}
	for _, state := range []control.State{control.Failed, control.Lost, control.Stalled, control.Paused} {
		for _, x := range s.instances {
			if x.state == state {
				return x.name + " " + s.why(x)
			}
		}
	}
	if x, text := s.holder(); x == nil && text != "" {
		return "the components of this process hold " + text
	}
	for _, x := range s.instances {
		if x.silent > stallTime {
			return fmt.Sprintf("%s, or another component on the loop %q, has been at one message for %s", x.name, x.loop.Name(), seconds(x.silent))
		}
	}
	return ""
}

// stands reports whether the run has stalled: messages wait too long, or no instance takes any.
func (s *statusSnapshot) stands() bool {
	idle := true
	for _, x := range s.instances {
		if x.stalled > 0 {
			return true
		}
		idle = idle && s.at.Sub(x.tookAt) > stallTime
	}
	return idle
}

// last follows full wires downstream, to the instance that does not take although it has room behind it.
func (s *statusSnapshot) last(l *link) *link {
	been := map[*seen]bool{}
	for len(l.to.out) > 0 && !been[l.to] {
		been[l.to] = true
		l = l.to.out[0]
	}
	return l
}

// waitingAt returns the fullest connection that leads to an instance, nil if no message waits for it.
func (s *statusSnapshot) waitingAt(x *seen) (found *link) {
	for _, from := range s.instances {
		for _, l := range from.links {
			if l.to == x && l.queued > 0 && (found == nil || l.queued > found.queued) {
				found = l
			}
		}
	}
	return found
}

// why says why an instance does not take.
func (s *statusSnapshot) why(x *seen) string {
	switch {
	case x.state == control.Paused:
		return "is paused (rlhost resume " + x.name + ")"
	case x.live.failed() != nil:
		return "has failed: " + x.live.failed().Error()
	case gone(&x.proc):
		return "has no process: it is " + x.proc.State
	case x.stalled > 0 && x.proc.Unfinished > 0:
		return fmt.Sprintf("has a process, pid %d, that has not finished with a message for %s", x.proc.PID, seconds(x.stalled))
	case x.state == control.Stalled && x.stalled == 0:
		_, text := s.holder()
		return "holds " + text + ", and the rollouts wait for free blocks"
	case x.loop.Ended():
		return "has ended with its loop"
	case x.silent > stallTime:
		return fmt.Sprintf("has been at one message for %s", seconds(x.silent))
	}
	return fmt.Sprintf("has taken nothing for %s", seconds(s.at.Sub(x.tookAt)))
}

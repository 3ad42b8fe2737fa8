package diagnosis

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/control"
)

// link is a connection at that moment.
type link struct {
	from, to *Instance
	slot     string // batcher.on_trajectories
	signal   string // rollout.trajectories
	queued   int
	depth    int
	parked   int
}

// Connect adds a connection between two instances, from a signal to a slot.
func (x *Instance) Connect(to *Instance, c *bus.Connection, signal, slot string) {
	n := c.Stats()
	l := &link{from: x, to: to, slot: slot, signal: signal,
		queued: n.Queued, depth: c.Options().Depth, parked: n.Parked}
	x.links = append(x.links, l)
	if l.parked > 0 || x.Blocked && c.Options().Overflow == bus.Block && 2*l.queued > l.depth {
		x.out = append(x.out, l)
	}
}

// name is "rollout.trajectories → batcher.on_trajectories".
func (l *link) name() string { return l.signal + " → " + l.slot }

// String names the link and says how full it is.
func (l *link) String() string {
	text := fmt.Sprintf("%s is full (%d/%d", l.name(), l.queued, l.depth)
	if l.parked > 0 {
		text += fmt.Sprintf(", %d more wait", l.parked)
	}
	return text + ")"
}

// Cause says why the run has stalled: the first cause, and the blocked wire. It is empty while the run progresses, and
// before and after it.
func (s *Run) Cause() string {
	if s.Over != "" || !s.Begun || !s.stalled() {
		return ""
	}
	for _, x := range s.Instances {
		if x.WaitsForRoom() {
			l := s.last(x.out[0])
			return fmt.Sprintf("%s %s: %v", l.to.Name, s.why(l.to), l)
		}
	}
	for _, x := range s.Instances {
		if l := s.waitingAt(x); l != nil && x.Stalled > 0 {
			return fmt.Sprintf("%s %s: %d of %d wait at %s", x.Name, s.why(x), l.queued, l.depth, l.name())
		}
	}
	for _, state := range []control.State{control.Failed, control.Lost, control.Stalled, control.Paused} {
		for _, x := range s.Instances {
			if x.State == state {
				return x.Name + " " + s.why(x)
			}
		}
	}
	for _, x := range s.Instances {
		if x.Silent > stallTime {
			return fmt.Sprintf("%s, or another component on the loop %q, has been at one message for %s", x.Name, x.Loop, seconds(x.Silent))
		}
	}
	if text := s.debt(); text != "" {
		return text
	}
	if text := s.swallowed(); text != "" {
		return text
	}
	if x, text := s.holder(); x == nil && text != "" {
		return "the components of this process hold " + text
	}
	return s.waits()
}

// Standing is Cause unless a pause, a change or a long dataset is the reason.
func (s *Run) Standing() string {
	for _, x := range s.Instances {
		if x.Paused || x.Replaced || x.Learns && x.Silent > stallTime {
			return ""
		}
	}
	return s.Cause()
}

// debt names the oldest answer that is owed for too long.
func (s *Run) debt() string {
	var by *Instance
	var oldest Debt
	for _, x := range s.Instances {
		for _, d := range x.Debts {
			if d.For > max(stallTime, oldest.For) {
				by, oldest = x, d
			}
		}
	}
	if by == nil {
		return ""
	}
	text := fmt.Sprintf("%s owes %s an answer to %s for %s", by.Name, oldest.To, oldest.Signal, seconds(oldest.For))
	if refused := by.Process.Refused; refused != "" {
		text += "; " + refused
	}
	return text
}

// manyTrajectories is more than a component that chooses among trajectories may have under lease.
const manyTrajectories = 64

// swallowed names an instance that takes trajectories and sends none on, where nothing is learned.
func (s *Run) swallowed() string {
	for _, x := range s.Instances {
		if x.Learns && s.At.Sub(x.TookAt) <= stallTime {
			return ""
		}
	}
	for _, x := range s.Instances {
		if x.Swallowed > manyTrajectories && s.At.Sub(x.SentAt) > stallTime {
			return fmt.Sprintf("%s has taken %d trajectories for %s and sent none on", x.Name, x.Swallowed, seconds(s.At.Sub(x.SentAt)))
		}
	}
	return ""
}

// waits describes what the instance without messages for longest waits for: nothing else is known.
func (s *Run) waits() string {
	var longest *Instance
	for _, x := range s.Instances {
		if s.WaitsFor(x) != "" && (longest == nil || x.TookAt.Before(longest.TookAt)) {
			longest = x
		}
	}
	if longest == nil {
		return ""
	}
	text := fmt.Sprintf("no component has taken anything for %s; %s waits for %s", seconds(stallTime), longest.Name, s.WaitsFor(longest))
	for _, x := range s.Instances {
		if refused := x.Process.Refused; refused != "" {
			text += fmt.Sprintf("; %s: %s", x.Name, refused)
		}
	}
	return text
}

// stalled reports whether the run has stalled: messages wait too long, or no instance takes any.
func (s *Run) stalled() bool {
	if s.debt() != "" || s.swallowed() != "" {
		return true
	}
	idle := true
	for _, x := range s.Instances {
		if x.Stalled > 0 {
			return true
		}
		idle = idle && s.At.Sub(x.TookAt) > stallTime
	}
	return idle
}

// holder names the longest holder of trajectories: an instance in a process, or this process, whose components cannot be distinguished.
func (s *Run) holder() (x *Instance, text string) {
	var longest time.Duration
	for _, y := range s.Instances {
		if age := y.Held.age(s.At); age > max(longest, stallTime) {
			x, longest, text = y, age, y.Held.text(s.At)
		}
	}
	if x == nil && s.Held.age(s.At) > stallTime {
		text = s.Held.text(s.At)
	}
	return x, text
}

// findHolder finds, where nothing progresses and no message is pending, the instance that keeps its messages: it
// is stalled.
func (s *Run) findHolder() {
	if s.Over != "" || !s.Begun || !s.stalled() {
		return
	}
	for _, x := range s.Instances {
		if x.Stalled > 0 || x.State != control.Running || x.WaitsForRoom() {
			return // that is the cause
		}
	}
	if x, _ := s.holder(); x != nil {
		x.State = control.Stalled
	}
}

// last follows full wires downstream, to the instance that takes no message although its own outputs have room.
func (s *Run) last(l *link) *link {
	been := map[*Instance]bool{}
	for l.to.WaitsForRoom() && !been[l.to] {
		been[l.to] = true
		l = l.to.out[0]
	}
	return l
}

// waitingAt returns the fullest connection that leads to an instance, nil if no message waits for it.
func (s *Run) waitingAt(x *Instance) (found *link) {
	for _, from := range s.Instances {
		for _, l := range from.links {
			if l.to == x && l.queued > 0 && (found == nil || l.queued > found.queued) {
				found = l
			}
		}
	}
	return found
}

// why says why an instance does not take.
func (s *Run) why(x *Instance) string {
	switch {
	case x.State == control.Paused:
		return "is paused (rlhost unpause " + x.Name + ")"
	case x.Fault != nil:
		return "has failed: " + x.Fault.Error()
	case gone(&x.Process):
		return "has no process: it is " + x.Process.State
	case x.Stalled > 0 && x.Process.Unfinished > 0:
		return fmt.Sprintf("has a process, pid %d, that has not finished with a message for %s", x.Process.PID, seconds(x.Stalled))
	case x.State == control.Stalled && x.Stalled == 0:
		_, text := s.holder()
		return "holds " + text + ", and the rollouts wait for free blocks"
	case x.LoopEnded:
		return "has ended with its loop"
	case x.Silent > stallTime:
		return fmt.Sprintf("has been at one message for %s", seconds(x.Silent))
	}
	return fmt.Sprintf("has taken nothing for %s", seconds(s.At.Sub(x.TookAt)))
}

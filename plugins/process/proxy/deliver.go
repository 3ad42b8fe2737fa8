package proxy

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// deliver emits a message of the process, once it is clear that its receivers can do something with it. It runs
// wherever messages are taken out of the ring.
func (l *session) deliver(port int, m *hostabi.Message) error {
	x := l.x
	p := &x.manifest.Signals[port]
	admitted := true
	switch {
	case p.OnLoan:
		admitted = l.admitOnLoan(port, m)
	case m.Handle != 0 || x.carry[port].Block:
		admitted = l.admit(port, m)
	}
	if !admitted {
		l.reject(p, m, errors.New("not a block that it may speak of"))
		return nil
	}
	m.Signal, m.Slot = uint16(port), 0
	if x.carry[port].Publishes && m.PolicyVersion > x.published.Load() {
		x.published.Store(m.PolicyVersion) // one goroutine at a time delivers
	}
	x.spans.emits(&x.carry[port], m)
	switch err := x.signals[port].Emit(*m); {
	case errors.Is(err, component.ErrTwice) && !l.again: // else a process before it may have sent it
		return err
	case errors.Is(err, bus.ErrFull), errors.Is(err, bus.ErrOverrun):
		x.h.Fail(err)
	case err != nil:
		l.reject(p, m, err)
	}
	return nil
}

// reject drops a message. The first of each session is logged: a plugin that does nothing else must not fill the log.
func (l *session) reject(p *component.Port, m *hostabi.Message, err error) {
	l.x.meters.rejected.Inc()
	if l.refused.CompareAndSwap(nil, new(fmt.Sprintf("the host refused what it sent on %s: %v", p.Name, err))) {
		l.x.h.Log.Warn("a message of the plugin was dropped, and others like it will be without a word",
			"signal", p.Name, "block", m.Handle, "err", err)
	}
}

// admit reports whether the process may send a block as this signal's payload. The component that claims the block checks that it is live.
func (l *session) admit(port int, m *hostabi.Message) bool {
	x := l.x
	a, err := x.h.Arenas.Of(m.Handle)
	if err != nil {
		return false
	}
	if x.carry[port].Steps {
		_, ok := a.Schema().(*trajectory.Schema)
		return ok
	}
	if x.owns(a.ID()) {
		return true
	}
	for i := range x.slots {
		if x.manifest.Slots[i].Payload == x.carry[port].Name && x.slots[i].arenas[a.ID()].Load() {
			return true
		}
	}
	return false
}

// admitOnLoan reports whether a message is about a block that the process was asked about, or that it has on loan itself and asks about.
func (l *session) admitOnLoan(port int, m *hostabi.Message) bool {
	x := l.x
	if m.Handle == 0 {
		return false
	}
	q := questionOf(m)
	x.mu.Lock()
	asked, isAnswer := x.open[q]
	delete(x.open, q)
	x.mu.Unlock()
	if isAnswer {
		m.Split = asked.Split
		if x.carry[port].Answers { // the reply is the request
			if m.Kind, m.Inline = asked.Kind, asked.Inline; x.carry[port].Name == component.PayloadActions {
				m.Inline = x.answerTo(&asked)
			}
		}
		return true
	}
	if !x.owns(m.Handle.Arena()) || !x.onLoan(m.Handle) {
		return false
	}
	if n := x.signals[port].Receivers(); n > 0 {
		l.ask(port, m, n) // else there will be no answer
	}
	return true
}

// answerTo returns the inline words of the answer to an act request: the same, with the policy whose rows are
// written. The policy comes from the component's table, not from the process.
func (x *shared) answerTo(asked *hostabi.Message) [2]uint64 {
	a, err := x.h.Arenas.Of(asked.Handle)
	if err != nil {
		return asked.Inline // the receiver sees that
	}
	s, ok := a.Schema().(*trajectory.Schema)
	if !ok || s.Shape.Policies == "" {
		return asked.Inline
	}
	r := trajectory.ActRequestOf(asked)
	name, _ := x.config["policy"].(string)
	r.Policy, _ = s.PolicyPlace(name)
	return r.Message().Inline
}

// control handles a message about the link. It must not wait.
func (l *session) control(m *hostabi.Message) error {
	switch m.Slot {
	case hostabi.LinkCredit:
		_ = l.x.h.Arenas.Credit(m.Handle) // the block may be another's by now
		return nil
	case hostabi.LinkBoundary:
		if l.atBoundary.Swap(true) {
			return errors.New("a dataset boundary within another")
		}
		l.x.h.Receiver.Control(l.boundary, hostabi.Message{})
		return nil
	case hostabi.LinkStop:
		reasons := map[uint16]component.StopReason{
			hostabi.LinkStopReturn: component.StopReturn, hostabi.LinkStopEnvSteps: component.StopEnvSteps,
			hostabi.LinkStopWall: component.StopWallTime, hostabi.LinkStopOwn: component.StopOwn,
		}
		reason, ok := reasons[m.Kind]
		if !ok {
			return fmt.Errorf("stop for reason %d", m.Kind)
		}
		l.x.h.Stop(reason)
		return nil
	}
	return fmt.Errorf("control message %#x", m.Slot)
}

// boundary passes a dataset boundary on. The process waits until it hears that the boundary is over. In
// synchronous mode the host acts on it after the messages queued now, and so do the next lines.
func (l *session) boundary(*hostabi.Message) {
	if !l.current.Load() {
		return
	}
	l.x.h.Boundary()
	switch {
	case l.x.h.Receiver.Loop().Stopped(): // the run has ended: further learning would not be saved
	case l.x.h.Run.Synchronous:
		l.x.h.Receiver.Post(l.boundaryOver, hostabi.Message{})
	default:
		l.boundaryOver(nil)
	}
}

func (l *session) boundaryOver(*hostabi.Message) {
	if !l.current.Load() {
		return
	}
	l.save()
	l.atBoundary.Store(false)
	l.link.Post(hostabi.Message{Slot: hostabi.LinkBoundaryOver})
}

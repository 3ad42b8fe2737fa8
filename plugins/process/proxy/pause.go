package proxy

import (
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

var _ component.Pauser = (*proxy)(nil)

// pauseStep is how often the proxy checks whether the process has finished its messages: acknowledgements arrive without waking anyone.
const pauseStep = 500 * time.Microsecond

// Pause tells the process to pause, where it offers that, and then waits until it has finished with all its messages. A
// process that dies meanwhile is replaced by its successor first.
func (x *proxy) Pause(rested func()) {
	x.pause = &pause{rested: rested}
	x.pause.timer = x.shared.h.Receiver.Every(pauseStep, x.settle)
	x.settle()
}

// settle looks how far the pause is, on the loop.
func (x *proxy) settle() {
	p := x.pause
	if p == nil || p.rested == nil {
		return
	}
	x.shared.mu.Lock()
	l, running := x.session, x.state == component.ProcessRunning
	x.shared.mu.Unlock()
	if l == nil || !running {
		return
	}
	if x.pauses && p.asked != l {
		x.ask(p, l)
		return
	}
	if x.pauses && !p.done {
		return
	}
	// Answers and the end of a boundary come after the waiting messages, and the process may need them to pause.
	if held := l.asking() == 0 && !l.atBoundary.Load(); held || p.held == l {
		p.held = l
		l.link.HoldBack(held)
	}
	if !l.idle(x.pauses) {
		return
	}
	rested := p.rested
	p.rested = nil
	p.timer.Stop()
	rested()
}

// ask tells the process to pause. The loop then handles its answer, or the lack of one.
func (x *proxy) ask(p *pause, l *session) {
	l.pauses++
	p.asked, p.number, p.done = l, l.pauses, false
	request := native.Pausing{Number: p.number}
	x.asking.Go(func() {
		err := l.call(x.shared.running, native.MethodPause, request, nil)
		x.shared.h.Receiver.Control(func(*hostabi.Message) {
			if x.pause != p || p.asked != l {
				return
			}
			if p.done = err == nil; !p.done { // a successor will be asked again
				x.shared.h.Log.Warn("the plugin does not become idle", "err", err)
			}
			x.settle()
		}, hostabi.Message{})
	})
}

// Resume ends a Pause. It waits for the process to have heard of it: later messages must not overtake that.
func (x *proxy) Resume() {
	p := x.pause
	x.pause = nil
	if p == nil {
		return
	}
	p.timer.Stop()
	if p.held != nil {
		defer p.held.link.HoldBack(false)
	}
	if p.asked == nil || !p.asked.current.Load() {
		return
	}
	if err := p.asked.callOnLoop(native.MethodResume, native.Pausing{Number: p.number}, nil); err != nil {
		p.asked.fault(err)
	}
}

// Waiting asks the process for the messages that it has not begun with, and claims their blocks: its own claims end with it.
func (x *proxy) Waiting() []component.Waiting {
	var list []component.Waiting
	if p := x.pause; p != nil && p.asked != nil && x.Process().State != component.ProcessFailed {
		list = x.waitingIn(p.asked)
	}
	x.shared.mu.Lock()
	kept := x.waiting
	x.waiting = nil
	x.shared.mu.Unlock()
	for _, m := range kept {
		list = append(list, component.Waiting{Slot: x.shared.manifest.Slots[m.Port].Name, Message: m.Message, Claimed: m.Claimed})
	}
	return list
}

func (x *proxy) waitingIn(l *session) []component.Waiting {
	var answer native.WaitingList
	if err := l.callOnLoop(native.MethodWaiting, native.Empty{}, &answer); err != nil {
		x.shared.meters.lost.Inc()
		x.shared.h.Log.Warn("what the plugin had not begun with is lost", "err", err)
		return nil
	}
	var list []component.Waiting
	given := l.link.Stats().Sent
	for i := range answer.Messages {
		if uint64(i) >= given {
			x.shared.meters.rejected.Add(uint64(len(answer.Messages) - i))
			break
		}
		w, ok := x.admitWaiting(&answer.Messages[i])
		if !ok {
			x.shared.meters.rejected.Inc()
			continue
		}
		list = append(list, w)
	}
	return list
}

// admitWaiting reports whether the process can have got a message that it says it has not begun with, and claims its
// block. A request about a block on loan is replaced by the host's own copy, once.
func (x *proxy) admitWaiting(w *native.Waiting) (component.Waiting, bool) {
	i := slices.IndexFunc(x.shared.manifest.Slots, func(p component.Port) bool { return p.Name == w.Slot })
	if i < 0 {
		return component.Waiting{}, false
	}
	m := component.Waiting{Slot: w.Slot, Message: hostabi.Message{
		Sender: w.Sender, Kind: w.Kind, Handle: hostabi.Handle(w.Handle), T: w.T, Split: w.Split,
		PolicyVersion: w.PolicyVersion, Sequence: w.Sequence, Inline: [2]uint64{uint64(w.Inline[0]), uint64(w.Inline[1])},
	}}
	h, block := m.Message.Handle, component.PayloadOf(x.shared.manifest.Slots[i].Payload).Block
	switch {
	case h == 0:
		return m, !w.Claimed && !block
	case !x.shared.slots[i].arenas[h.Arena()].Load():
		return m, false
	case x.shared.onLoan(h):
		q := questionOf(&m.Message)
		x.shared.mu.Lock()
		defer x.shared.mu.Unlock()
		var asked bool
		m.Message, asked = x.shared.open[q]
		delete(x.shared.open, q)
		return m, asked && !block
	}
	m.Claimed = x.shared.h.Arenas.Retain(h) == nil
	return m, m.Claimed
}

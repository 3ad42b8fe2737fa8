package process

import (
	"context"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/process/protocol"
)

var _ component.Pauser = (*proxy)(nil)

// pauseStep is how often it is looked whether the process has finished with what it was given. What it has finished
// with arrives in acknowledgements, which call nobody.
const pauseStep = 500 * time.Microsecond

// pause is a Pause of a proxy. It belongs to the loop.
type pause struct {
	rested func() // nil once it was called
	timer  *loop.Timer
	asked  *life // that was told to come to rest
	done   bool  // it has said that it is
}

// Pause waits until the process has finished with everything that it was given, and, where it offers that, until its
// component says that it is at rest. A process that dies meanwhile is replaced by its successor first.
func (x *proxy) Pause(rested func()) {
	x.pause = &pause{rested: rested}
	x.pause.timer = x.h.Receiver.Every(pauseStep, x.settle)
	x.settle()
}

// settle looks how far the pause is, on the loop.
func (x *proxy) settle() {
	p := x.pause
	if p == nil || p.rested == nil {
		return
	}
	x.mu.Lock()
	l, running := x.life, x.state == stateRunning
	x.mu.Unlock()
	if l == nil || !running || !l.idle(x.pauses) {
		return
	}
	if x.pauses && p.asked != l {
		p.asked, p.done = l, false
		x.ask(p, l)
		return
	}
	if x.pauses && !p.done {
		return
	}
	l.drain() // what it emitted before it came to rest
	rested := p.rested
	p.rested = nil
	p.timer.Stop()
	rested()
}

// idle reports whether the process has finished with what it was given. One that cannot be told to rest must have
// answered all questions as well.
func (l *life) idle(pauses bool) bool {
	l.drain()
	s := l.link.Stats()
	return s.Unacked == 0 && s.Queued == 0 && (pauses || s.Open == 0 && l.asking() == 0)
}

// drain takes over what lies in the ring now.
func (l *life) drain() {
	for range hostabi.LinkCells {
		if l.link.Stats().Available == 0 {
			return
		}
		l.link.Poll()
	}
}

// ask tells the process to come to rest. Its answer, or that there is none, is looked at on the loop.
func (x *proxy) ask(p *pause, l *life) {
	x.asking.Go(func() {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		go func() {
			select {
			case <-x.quit:
				cancel(errStopping)
			case <-ctx.Done():
			}
		}()
		err := l.process.call(ctx, protocol.MethodPause, protocol.Empty{}, nil)
		x.h.Receiver.Control(func(*hostabi.Message) {
			if x.pause != p || p.asked != l {
				return
			}
			if p.done = err == nil; !p.done { // a successor will be asked anew
				x.h.Log.Warn("the plugin does not come to rest", "err", err)
			}
			x.settle()
		}, hostabi.Message{})
	})
}

// Resume ends a Pause. It waits for the process to have heard of it: what follows must not overtake that.
func (x *proxy) Resume() {
	p := x.pause
	x.pause = nil
	if p == nil {
		return
	}
	p.timer.Stop()
	if p.asked == nil || !p.asked.isCurrent() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), p.asked.patience(), errGrace)
	defer cancel()
	if err := p.asked.call(ctx, protocol.MethodResume, protocol.Empty{}, nil); err != nil {
		p.asked.fault(err)
	}
}

// Waiting asks the process for what it has not begun with, and claims the blocks: its own claims end with it.
func (x *proxy) Waiting() []component.Waiting {
	var list []component.Waiting
	if p := x.pause; p != nil && p.asked != nil {
		list = x.waitingIn(p.asked)
	}
	x.mu.Lock()
	kept := x.waiting
	x.waiting = nil
	x.mu.Unlock()
	for _, m := range kept {
		list = append(list, component.Waiting{Slot: x.manifest.Slots[m.Port].Name, Message: m.Message, Claimed: m.Claimed})
	}
	return list
}

func (x *proxy) waitingIn(l *life) []component.Waiting {
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.patience(), errGrace)
	defer cancel()
	var answer protocol.WaitingList
	if err := l.call(ctx, protocol.MethodWaiting, protocol.Empty{}, &answer); err != nil {
		x.h.Log.Warn("what the plugin had not begun with is lost", "err", err)
		return nil
	}
	var list []component.Waiting
	for _, w := range answer.Messages {
		m := component.Waiting{Slot: w.Slot, Claimed: w.Claimed, Message: hostabi.Message{
			Sender: w.Sender, Kind: w.Kind, Handle: hostabi.Handle(w.Handle), T: w.T, Split: w.Split,
			PolicyVersion: w.PolicyVersion, Sequence: w.Sequence, Inline: w.Inline,
		}}
		_, known := x.manifest.Slot(w.Slot)
		if !known || w.Claimed && x.h.Arenas.Retain(m.Message.Handle) != nil {
			x.meters.lost.Inc()
			continue
		}
		list = append(list, m)
	}
	return list
}

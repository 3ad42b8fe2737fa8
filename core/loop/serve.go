package loop

import (
	"context"
	"runtime"
	"slices"
)

// idleYields is how often an idle loop yields before it sleeps. One or two cut the time of a ping-pong between two loops
// (BenchmarkPost_PingPong) by a third to a half, with one processor as with two; the effect of more was lost in the noise.
const idleYields = 2

// serve handles messages until the loop ends.
func (l *Loop) serve(ctx context.Context) {
	for {
		if l.attention.Load() && !l.attend(ctx) {
			l.drain()
			return
		}
		if l.step() {
			continue
		}
		l.poll()
		if !(l.refill() && l.step()) {
			l.idle()
		}
	}
}

// attend handles the control messages posted so far and reports whether the loop continues. Later ones wait for
// one data message, so that a slot that keeps posting to its own control lane does not starve data.
func (l *Loop) attend(ctx context.Context) bool {
	l.takeControl()
	l.runControl()
	return !l.stopped.Load() && ctx.Err() == nil
}

// drain handles the control messages that are left when the loop ends, and their consequences.
func (l *Loop) drain() {
	for range drainRounds {
		l.takeControl()
		if len(l.urgent) == 0 {
			return
		}
		l.runControl()
	}
}

func (l *Loop) takeControl() {
	l.mu.Lock()
	l.attention.Store(false)
	l.urgent, l.control = l.control, l.urgent[:0]
	l.urgentPos = 0
	l.mu.Unlock()
}

func (l *Loop) runControl() {
	for l.urgentPos < len(l.urgent) {
		it := &l.urgent[l.urgentPos]
		l.urgentPos++
		if r := it.r; r.Held() {
			l.keep(r, &r.urgent, it)
			continue
		}
		l.run(it)
	}
}

// step handles one data message that the loop has taken over, if there is one: the oldest in the backlog of a
// resumed receiver, else the next of the batch.
func (l *Loop) step() bool {
	for len(l.ready) > 0 {
		r := l.ready[0]
		if r.backlog.Len() > 0 && r.paused.Load() <= 0 {
			it := r.backlog.Pop()
			l.unkeep(r)
			l.run(it)
			return true
		}
		r.ready = false
		l.ready = l.ready[:copy(l.ready, l.ready[1:])]
	}
	if l.batchPos == len(l.batch) {
		return false
	}
	it := &l.batch[l.batchPos]
	l.batchPos++
	if r := it.r; r.paused.Load() > 0 || r.backlog.Len() > 0 {
		l.keep(r, &r.backlog, it)
		return true
	}
	l.run(it)
	return true
}

// keep puts an item into a backlog of r.
func (l *Loop) keep(r *Receiver, b *backlog, it *item) {
	if r.urgent.Len()+r.backlog.Len() == 0 {
		l.holding = append(l.holding, r)
	}
	*b.Push() = *it
	it.forget()
}

// unkeep, after items of r have left a backlog, forgets r if that was the last.
func (l *Loop) unkeep(r *Receiver) {
	if r.urgent.Len()+r.backlog.Len() == 0 {
		l.holding = slices.DeleteFunc(l.holding, func(h *Receiver) bool { return h == r })
	}
}

// run handles one message. Its references are dropped also when it panics.
func (l *Loop) run(it *item) {
	t := it.t
	l.current = it.r
	it.forget()
	t.Deliver(&it.m)
}

// refill takes the messages posted since the batch was taken.
func (l *Loop) refill() bool {
	if !l.fresh.Load() {
		return false
	}
	l.mu.Lock()
	l.fresh.Store(false)
	l.batch, l.data = l.data, l.batch[:0]
	l.mu.Unlock()
	l.batchPos = 0
	return len(l.batch) > 0
}

// idle sleeps until something is posted. It yields a few times first, because another goroutine is often
// producing the next message right now, and yielding costs less than sleep and wake.
func (l *Loop) idle() {
	if s := l.source.Load(); s != nil {
		l.idleAt(*s)
		return
	}
	for range idleYields {
		runtime.Gosched()
		if l.fresh.Load() || l.attention.Load() {
			return
		}
	}
	l.mu.Lock()
	if len(l.data) > 0 || l.attention.Load() {
		l.mu.Unlock()
		return
	}
	l.asleep = true
	l.mu.Unlock()
	<-l.bell
}

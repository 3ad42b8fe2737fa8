package pipeline

import (
	"context"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
)

// haltEnded pauses the instances that will end. Messages for them stay pending meanwhile.
func (t *Transition) haltEnded(ctx context.Context, o *Outcome) error {
	for _, m := range t.plan.ended {
		forced, err := t.halt(ctx, m, o)
		if err != nil {
			return err
		}
		t.undo = append(t.undo, func() error { t.resume(m.instance, forced); return nil })
	}
	return nil
}

// halt pauses an instance that the change removes, or stops it as it is where the change is forced.
func (t *Transition) halt(ctx context.Context, m member, o *Outcome) (forced bool, err error) {
	if t.pausedByRequest(m.instance) {
		m.host.Receiver.Hold()
		return false, nil
	}
	help := "rlhost status says what it waits for; --force takes it away as it is, and counts what is lost"
	if m.learns() {
		help = "what it has learned would be lost with it: rlhost status says what it waits for"
	}
	force, limit := t.options.Force > 0 && !m.learns(), t.options.Deadline
	if force {
		limit = t.options.Force
	}
	late := refuse(control.CodeLate, help, "%s did not become idle within %v; it continues as before", m.name, limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	unfinished, blocks := m.process().Unfinished, 0
	if holder := m.process().Holder; holder > 0 {
		t.p.running.heldBy(holder)(func(*arena.Arena, hostabi.Handle) { blocks++ })
	}
	forced, err = m.halt(ctx, force)
	if owed := m.owed(); len(owed) > 0 && (forced || err != nil) {
		t.p.running.log.Warn("an instance that did not become idle waits for answers", "component", m.name, "owed", owed)
	}
	if forced {
		o.note("%s was taken away as it was, because it did not become idle within %v: it had not finished with %d messages and held %d blocks; "+
			"what no other instance is given of that is lost, and counts as dropped by it", m.name, limit, unfinished, blocks)
	}
	if err == nil && m.live.failed() != nil {
		m.answered(context.Background())
	}
	return forced, err
}

// resume resumes an instance that is not removed after all.
func (t *Transition) resume(x *instance, forced bool) {
	switch {
	case t.pausedByRequest(x):
		x.host.Receiver.Release()
	case forced:
		x.resumeForced()
	default:
		x.resume()
	}
}

// pausedByRequest reports whether an instance is paused by request, and stays so while the change is made.
func (t *Transition) pausedByRequest(x *instance) bool {
	return t.still && t.p.pauses.has(x) && x.live.failed() == nil
}

// continueVersions makes added learners continue the versions of the learners that end, which publish no more.
func continueVersions(t *Transition) {
	for i := range t.plan.ended {
		if m := &t.plan.ended[i]; m.learns() {
			t.p.running.leave(m)
		}
	}
	for i := range t.next.members {
		if m := &t.next.members[i]; m.learns() && m.joining.Load() != nil {
			m.loop.Do(func() { m.host.Published = max(m.host.Published, t.p.running.Left()[m.of.Policy]) })
		}
	}
}

// leave ends a paused instance. Messages that it has taken and not begun with, and messages pending for it, go to
// another instance of its component; if there is none, to an instance wired in its place; else they are dropped.
func (t *Transition) leave(m member, o *Outcome) {
	var waiting []component.Waiting
	if pauser, ok := m.component.(component.Pauser); ok && m.live.failed() == nil {
		m.loop.Do(func() { waiting = pauser.Waiting() })
	}
	if m.live.failed() != nil {
		m.dismiss()
	}
	t.passOn(m, waiting, o)
	for _, c := range t.p.running.draining() { // it has no other connections left
		for _, port := range m.of.Manifest.Slots {
			if c.Slot() != m.host.BoundSlot(port.Name) {
				continue
			}
			if to := t.instead(m.of.Name, port.Name, c); to == nil || bus.Redirect(bus.Way{Connection: c, To: to}) != nil {
				c.DisconnectNow()
			}
		}
	}
	if err := t.retire(m.instance, nil); err != nil {
		o.note("%v", err)
	}
}

// instead returns the slot that gets the messages pending on a connection to an ending instance, or nil.
func (t *Transition) instead(component, slot string, c *bus.Connection) *bus.Slot {
	for _, x := range t.next.members {
		if x.of.Name == component {
			return x.host.BoundSlot(slot)
		}
	}
	for _, w := range t.next.wires {
		if t.before.wire(w.wire) == nil && len(w.links) > 0 && w.links[0].Signal() == c.Signal() {
			return w.links[0].Slot()
		}
	}
	return nil
}

// passOn gives the messages that an instance has not begun with to another instance of its component.
func (t *Transition) passOn(m member, waiting []component.Waiting, o *Outcome) {
	if len(waiting) == 0 {
		return
	}
	for _, other := range t.next.members {
		if other.of.Name == m.of.Name {
			other.loop.Do(func() { t.p.running.feed(other.instance, waiting) })
			return
		}
	}
	for i := range waiting {
		t.p.running.unclaim(&waiting[i])
	}
	o.note("%d messages that waited in %s were dropped with it", len(waiting), m.name)
}

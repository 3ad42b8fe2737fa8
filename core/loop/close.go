package loop

import "slices"

// Close removes the component from its loop, which continues and keeps no reference to it: messages queued for it on both lanes are
// dropped, as Target.Drop says, its timers are stopped, and later posts are refused. When it has returned, none of the component's
// slots and timers runs again. Called on the loop, it does all that at once, and the calling slot runs to its end. Otherwise it
// waits for the running slot, so two loops must not close each other's receivers from their slots. It may be called more than once.
func (r *Receiver) Close() {
	l := r.loop
	l.mu.Lock()
	r.closed = true
	l.mu.Unlock()
	l.Do(r.shut)
}

// shut ends a receiver to which nothing more is posted. The caller must own the loop.
func (r *Receiver) shut() {
	l := r.loop
	for _, t := range r.timers(l) {
		t.Stop()
	}
	every := func(Target) bool { return true }
	items := l.takeOut(nil, r, true, every)
	items = l.takeOut(items, r, false, every)
	l.ready = slices.DeleteFunc(l.ready, func(o *Receiver) bool { return o == r })
	for i := range items {
		items[i].t.Drop(&items[i].m)
	}
}

func (r *Receiver) timers(l *Loop) []*Timer {
	l.mu.Lock()
	defer l.mu.Unlock()
	var timers []*Timer
	for t := range l.timers {
		if t.r == r {
			timers = append(timers, t)
		}
	}
	return timers
}

// Requeue moves pending messages on the data lane of r to other receivers, perhaps of other loops: to returns for each target
// the receiver of its messages; nil leaves them. They are queued there in order, after the messages already queued. The returned
// function drops messages that were refused because a receiver or loop is closed. Call Requeue on the loop of r or within Do.
func (r *Receiver) Requeue(to func(Target) *Receiver) (drop func()) {
	items := r.loop.takeOut(nil, r, false, func(t Target) bool { return to(t) != nil })
	items = slices.DeleteFunc(items, func(it item) bool { return to(it.t).PostTo(it.t, &it.m) })
	return func() {
		for i := range items {
			items[i].t.Drop(&items[i].m)
		}
	}
}

// takeOut moves the items of r in one lane that match to the end of list, in order. The item being handled stays.
func (l *Loop) takeOut(list []item, r *Receiver, control bool, match func(Target) bool) []item {
	kept, taken, at, posted := &r.backlog, &l.batch, l.batchPos, &l.data
	if control {
		kept, taken, at, posted = &r.urgent, &l.urgent, l.urgentPos, &l.control
	}
	list = kept.takeOut(list, match)
	l.unkeep(r)
	out := func(it item) bool {
		is := it.r == r && match(it.t)
		if is {
			list = append(list, it)
		}
		return is
	}
	*taken = (*taken)[:at+len(slices.DeleteFunc((*taken)[at:], out))]
	l.mu.Lock()
	defer l.mu.Unlock()
	*posted = slices.DeleteFunc(*posted, out)
	return list
}

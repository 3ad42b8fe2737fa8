package queue

import "github.com/rlhost/rlhost/hostabi"

// putSteps is tryPut with a call before each step that changes the memory. TestModel_AgreesWithTheCode and the tests
// that kill processes stop in these calls.
func (e *End) putSteps(items []Item, step func()) bool {
	q := e.q
	n := uint64(len(items))
	step()
	t, ok := q.claimRoom(n, e.owner)
	if !ok {
		return false
	}
	step()
	q.h.Tail.CompareAndSwap(t, t+n)
	for i := n; i > 0; i-- {
		c := q.cells.at(t + i - 1)
		step()
		c.fill(&items[i-1])
		step()
		c.ctl.Store(uint64(ready(t + i - 1)))
	}
	return true
}

// getSteps is tryGet in the same way.
func (e *End) getSteps(items []Item, step func()) int {
	q := e.q
	for w := word(q.cells.at(q.h.Head.Load()).ctl.Load()); w.state() == hostabi.RingVoid; {
		e.skipSteps(step)
		w = word(q.cells.at(q.h.Head.Load()).ctl.Load())
	}
	step()
	h, n := q.claimReady(uint64(len(items)), e.owner)
	if n == 0 {
		return 0
	}
	step()
	q.h.Head.CompareAndSwap(h, h+n)
	for i := n; i > 0; i-- {
		c := q.cells.at(h + i - 1)
		step()
		c.drain(&items[i-1], q.payload)
		step()
		c.ctl.Store(uint64(free(h + i - 1 + q.size)))
	}
	return int(n)
}

// skipSteps is skip in the same way.
func (e *End) skipSteps(step func()) {
	q := e.q
	h := q.h.Head.Load()
	c := q.cells.at(h)
	step()
	c.ctl.CompareAndSwap(uint64(void(h)), uint64(claim(h, hostabi.RingVoiding, 1, e.owner)))
	step()
	q.h.Head.CompareAndSwap(h, h+1)
	step()
	c.ctl.Store(uint64(free(h + q.size)))
}

// stopAfter runs f until it is about to make its step number n, counted from 0, and reports whether it got there.
func stopAfter(n int, f func(step func())) (stopped bool) {
	type stop struct{}
	defer func() {
		if r := recover(); r != nil {
			if _, ours := r.(stop); !ours {
				panic(r)
			}
			stopped = true
		}
	}()
	f(func() {
		if n--; n < 0 {
			panic(stop{})
		}
	})
	return false
}

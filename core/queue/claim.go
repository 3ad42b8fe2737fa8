package queue

import "github.com/rlhost/rlhost/hostabi"

// A put of k messages:
//
//	t = tail; cells t … t+k-1 are FREE
//	cell[t]     FREE(t) → WRITING(t, k, owner)     claims all of them in one step
//	tail        t → t+k                            or another process that sees the claim does it
//	cell[t+i]   → READY(t+i), last to first        the first store makes the batch visible
//
// and a get:
//
//	h = head; cells h … h+k-1 are READY
//	cell[h]     READY(h) → READING(h, k, owner)
//	head        h → h+k
//	cell[h+i]   → FREE(h+i+size), last to first
//
// Only the first cell of a claim changes hands by compare-and-swap. The others need no barrier: a process that looks at
// them has come from the first, and found that one free or ready.

// attempts bounds how often a claim is tried again. Every retry means that another process made progress; a peer
// that writes garbage can fake that for ever, and then the queue counts as full or empty.
const attempts = 1 << 12

// put is tryPut that also reclaims the cells that killed producers have left.
func (e *End) put(items []Item) bool {
	return e.tryPut(items) || e.q.skipVoids(e.owner) && e.tryPut(items)
}

// tryPut puts all items or none.
func (e *End) tryPut(items []Item) bool {
	q := e.q
	n := uint64(len(items))
	t, ok := q.claimRoom(n, e.owner)
	if !ok {
		return false
	}
	q.h.Tail.CompareAndSwap(t, t+n) // a failure means that another process helped
	for i := n - 1; i > 0; i-- {
		c := q.cells.at(t + i)
		c.fill(&items[i])
		c.plainStore(uint64(ready(t + i)))
	}
	c := q.cells.at(t)
	c.fill(&items[0])
	c.ctl.Store(uint64(ready(t)))
	return true
}

// claimRoom claims n free cells and returns the position of the first; false if there are not as many.
func (q *MPMC) claimRoom(n uint64, owner uint16) (uint64, bool) {
	for range attempts {
		t := q.h.Tail.Load()
		c := q.cells.at(t)
		w := word(c.ctl.Load())
		ahead := w.ahead(t)
		if ahead == 0 && w.state() == hostabi.RingFree && q.isFree(t+1, n-1) {
			if c.ctl.CompareAndSwap(uint64(w), uint64(claim(t, hostabi.RingWriting, n, owner))) {
				return t, true
			}
			continue
		}
		if ahead == 0 && w.state() != hostabi.RingFree {
			q.h.Tail.CompareAndSwap(t, t+q.extent(w)) // help its owner
			continue
		}
		// Occupied since the last lap, if tail is still the value that the cell was compared with.
		if ahead <= 0 && q.h.Tail.Load() == t {
			return 0, false
		}
	}
	return 0, false
}

// isFree reports whether n cells from pos on are free. It looks at the last first: they become free in order,
// except the cells of a killed consumer.
func (q *MPMC) isFree(pos, n uint64) bool {
	for i := n; i > 0; i-- {
		if word(q.cells.at(pos+i-1).ctl.Load()) != free(pos+i-1) {
			return false
		}
	}
	return true
}

// extent returns how many cells a claim takes. Whatever the word says, it is at least one and at most all.
func (q *MPMC) extent(w word) uint64 {
	if w.state() == hostabi.RingVoid || w.state() == hostabi.RingReady || w.state() == hostabi.RingFree {
		return 1
	}
	return min(max(w.count(), 1), q.size)
}

// fill copies an item, whose size has been checked, into a cell that this end has claimed.
func (c *cell) fill(item *Item) {
	move(c.payload(len(item.Payload)), item.Payload)
	c.len, c.kind = uint32(len(item.Payload)), item.Kind
}

// tryGet takes up to len(items) messages and returns how many.
func (e *End) tryGet(items []Item) int {
	q := e.q
	h, n := q.claimReady(uint64(len(items)), e.owner)
	if n == 0 {
		return 0
	}
	q.h.Head.CompareAndSwap(h, h+n)
	for i := n - 1; i > 0; i-- {
		c := q.cells.at(h + i)
		c.drain(&items[i], q.payload)
		c.plainStore(uint64(free(h + i + q.size)))
	}
	c := q.cells.at(h)
	c.drain(&items[0], q.payload)
	c.ctl.Store(uint64(free(h + q.size)))
	return int(n)
}

// claimReady claims up to limit messages and returns the position of the first and how many; 0 if there are none.
func (q *MPMC) claimReady(limit uint64, owner uint16) (uint64, uint64) {
	for range attempts {
		h := q.h.Head.Load()
		c := q.cells.at(h)
		w := word(c.ctl.Load())
		if ahead := w.ahead(h); ahead != 0 {
			if ahead < 0 && q.h.Head.Load() == h {
				return 0, 0
			}
			continue
		}
		switch w.state() {
		case hostabi.RingReady:
			n := 1 + q.countReady(h+1, limit-1)
			if c.ctl.CompareAndSwap(uint64(w), uint64(claim(h, hostabi.RingReading, n, owner))) {
				return h, n
			}
		case hostabi.RingReading, hostabi.RingVoiding:
			q.h.Head.CompareAndSwap(h, h+q.extent(w)) // help its owner
		case hostabi.RingVoid:
			q.skip(h, owner)
		default:
			if q.h.Head.Load() == h {
				return 0, 0
			}
		}
	}
	return 0, 0
}

// countReady returns how many of the n cells from pos on are ready without a gap.
func (q *MPMC) countReady(pos, n uint64) uint64 {
	for i := range n {
		if word(q.cells.at(pos+i).ctl.Load()) != ready(pos+i) {
			return i
		}
	}
	return n
}

// skipVoids skips the cells that killed producers left at the head, and reports whether there were any: a queue full of
// them has room, even if no consumer gets.
func (q *MPMC) skipVoids(owner uint16) (found bool) {
	for range q.size {
		h := q.h.Head.Load()
		if word(q.cells.at(h).ctl.Load()) != void(h) {
			break
		}
		found = true
		q.skip(h, owner)
	}
	return found
}

// skip skips a cell that a killed producer left.
func (q *MPMC) skip(h uint64, owner uint16) {
	c := q.cells.at(h)
	if !c.ctl.CompareAndSwap(uint64(void(h)), uint64(claim(h, hostabi.RingVoiding, 1, owner))) {
		return
	}
	q.h.Head.CompareAndSwap(h, h+1)
	c.ctl.Store(uint64(free(h + q.size)))
}

// drain copies the message of a claimed cell out. Its length is not trusted: more than limit is taken for limit,
// for which the item has room.
func (c *cell) drain(item *Item, limit int) {
	n := min(int(c.len), limit)
	item.Kind = c.kind
	item.Payload = item.Payload[:n]
	move(item.Payload, c.payload(n))
}

// move copies a payload to a place of the same length. A call of the runtime's copy takes longer than everything else about a small message.
func move(to, from []byte) {
	if len(from) == 16 && len(to) == 16 {
		*(*[16]byte)(to) = *(*[16]byte)(from)
		return
	}
	copy(to, from)
}

package queue

import (
	"sync/atomic"

	"github.com/rlhost/rlhost/hostabi"
)

// Recovered counts what Recover did.
type Recovered struct {
	Voided int // cells whose producer ended before they were ready: messages that were never put
	Lost   int // messages held by an ended consumer, handed to lost
	Freed  int // cells given back
}

// Recover repairs everything that an owner had claimed when it ended, and wakes all waiters. It must not be called
// before the owner's process is known to have ended (its pidfd has fired), and only by one goroutine of one process
// at a time; all other owners may continue meanwhile. lost, which may be nil, gets the messages that the owner had
// taken and perhaps not finished with, oldest first, once their cells are free again: so it may put them back. lost
// may keep their memory. A Recover that was itself killed can be repeated.
func (q *MPMC) Recover(owner uint16, lost func(Item)) Recovered {
	var done Recovered
	for i := range q.size {
		w := word(q.cells.at(i).ctl.Load())
		if w.owner() != owner&ownerMask || w.pos()&(q.size-1) != i {
			continue
		}
		switch w.state() {
		case hostabi.RingWriting:
			done.Voided += q.voidClaim(w)
		case hostabi.RingReading, hostabi.RingVoiding:
			items := q.freeClaim(w, &done)
			for j := range items {
				if lost != nil {
					lost(items[j])
				}
			}
		}
	}
	q.notEmpty.Kick()
	q.notFull.Kick()
	return done
}

// voidClaim marks the cells of a claim to write as void, the first last: until then the claim can be found. tail
// moves past the claim before any of it changes, because afterwards its extent is unknown.
func (q *MPMC) voidClaim(w word) int {
	n := q.extent(w)
	q.pass(&q.h.Tail, w.pos(), n)
	for i := n; i > 0; i-- {
		pos := (w.pos() + i - 1) & positionMask
		q.cells.at(pos).ctl.Store(uint64(void(pos)))
	}
	return int(n)
}

// freeClaim frees the cells of a claim to read, the first last, and returns copies of the messages that the
// owner had not freed itself.
func (q *MPMC) freeClaim(w word, done *Recovered) []Item {
	n := q.extent(w)
	q.pass(&q.h.Head, w.pos(), n)
	var items []Item
	for i := range n {
		pos := (w.pos() + i) & positionMask
		c := q.cells.at(pos)
		if w.state() == hostabi.RingVoiding || i > 0 && word(c.ctl.Load()) != ready(pos) {
			continue
		}
		item := Item{Payload: make([]byte, 0, q.payload)}
		c.drain(&item, q.payload)
		items = append(items, item)
	}
	for i := n; i > 0; i-- {
		pos := (w.pos() + i - 1) & positionMask
		c := q.cells.at(pos)
		if i > 1 && word(c.ctl.Load()) != ready(pos) {
			continue
		}
		c.ctl.Store(uint64(free((pos + q.size) & positionMask)))
		done.Freed++
	}
	done.Lost += len(items)
	return items
}

// pass moves tail or head past a claim of n cells at a position modulo 2^40, unless another process has done so.
func (q *MPMC) pass(index *atomic.Uint64, pos, n uint64) {
	if at := index.Load(); at&positionMask == pos {
		index.CompareAndSwap(at, at+n)
	}
}

package queue

import (
	"sync/atomic"

	"github.com/rlhost/rlhost/hostabi"
)

// Recovered counts what Recover did.
type Recovered struct {
	Voided int // cells whose producer died before they were ready: messages that were never put
	Lost   int // messages that a consumer died with, handed to lost
	Freed  int // cells given back
}

// Recover repairs everything that an owner had claimed when it died, and wakes everybody. It must not be called
// before the owner's process is known to be dead (its pidfd has fired) and by one goroutine of one process at a
// time; everybody else may go on meanwhile. lost, which may be nil, gets the messages that the owner had taken and
// perhaps not finished with, oldest first, once their cells are free again: so it may put them back. Their memory is
// lost's to keep. A Recover that was itself killed can be repeated.
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

// voidClaim marks the cells of a claim to write as void, the first last: while it stands, the claim can be found.
// tail moves past the claim before anything of it changes, or nobody would know how far to move it.
func (q *MPMC) voidClaim(w word) int {
	n := q.extent(w)
	q.pass(&q.h.Tail, w.pos(), n)
	for i := n; i > 0; i-- {
		pos := (w.pos() + i - 1) & positionMask
		q.cells.at(pos).ctl.Store(uint64(void(pos)))
	}
	return int(n)
}

// freeClaim gives the cells of a claim to read back, the first last, and returns copies of the messages that the
// owner had not given back itself.
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

// pass moves tail or head past a claim of n cells at a position modulo 2^40, if nobody has done so yet.
func (q *MPMC) pass(index *atomic.Uint64, pos, n uint64) {
	if at := index.Load(); at&positionMask == pos {
		index.CompareAndSwap(at, at+n)
	}
}

package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/internal/fifo"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// Errors of queues.
var (
	// ErrLayout: the file is not a queue, or not of this version, or its header and its size disagree.
	ErrLayout = fifo.ErrLayout
	// ErrFull: there was no room within the time allowed.
	ErrFull = errors.New("queue is full")
	// ErrEmpty: there was no message within the time allowed.
	ErrEmpty = errors.New("queue is empty")
	// ErrShut: nothing more can be put, and all that was has been taken.
	ErrShut = errors.New("queue is shut")
	// ErrTooLarge: a message or batch that can never fit, or a buffer too small for a message.
	ErrTooLarge = errors.New("too large")
)

// Counters says how often the users of a queue, in all processes, have made system calls for it.
type Counters = fifo.Counters

// MaxOwner is the largest id of an owner.
const MaxOwner = ownerMask

// Item is a message of a queue. Kind is the user's.
type Item struct {
	Kind    uint32
	Payload []byte
}

// Items returns n items with room for the given number of bytes each, to pass to GetMany.
func Items(n, payload int) []Item {
	items := make([]Item, n)
	all := make([]byte, n*payload)
	for i := range items {
		items[i].Payload = all[i*payload : i*payload : (i+1)*payload]
	}
	return items
}

// MPMC is a queue with any number of producers and consumers, in any number of processes, of which any may be
// killed at any moment. Each message is delivered to one consumer, in the order of the puts. Threads use it
// through Ends.
//
// A message counts as put when its producer has finished it: what a killed producer had not finished disappears,
// and a batch is never partly put. Recover hands back what a killed consumer had claimed and not finished reading.
// Claims follow Vyukov's bounded queue in their use of positions; that a claim names its owner and extent in the
// word that it changes is what makes it repairable.
type MPMC struct {
	seg      *shm.Segment
	h        *fifo.Header
	cells    cells
	size     uint64
	payload  int
	notEmpty fifo.Bell
	notFull  fifo.Bell
}

// New makes an empty queue with the given number of cells, a power of two, for messages of up to payload
// bytes. The name shows up in /proc/*/maps.
func New(name string, cells, payload int) (*MPMC, error) {
	if payload < 1 || payload > hostabi.MaxRingPayload {
		return nil, fmt.Errorf("queue %q: payload of %d bytes: must be from 1 to %d", name, payload, hostabi.MaxRingPayload)
	}
	g := fifo.QueueGeometry(cells, payload)
	seg, err := fifo.Create(name, g, func(seg *shm.Segment) { clearCells(seg, g) })
	if err != nil {
		return nil, err
	}
	return newMPMC(seg, g), nil
}

// clearCells marks every cell of a zero segment as free for its first position.
func clearCells(seg *shm.Segment, g fifo.Geometry) {
	c := cellsAt(seg.Bytes(), g.Cells, g.CellBytes)
	for i := range uint64(g.Cells) {
		c.at(i).ctl.Store(uint64(free(i)))
	}
}

// Open opens a queue that another process made. It takes ownership of the file, also on an error: ErrLayout,
// or one of shm.Open's.
func Open(fd int) (*MPMC, error) {
	seg, g, err := fifo.Open(fd, hostabi.RingQueue)
	if err != nil {
		return nil, err
	}
	return newMPMC(seg, g), nil
}

func newMPMC(seg *shm.Segment, g fifo.Geometry) *MPMC {
	h := fifo.HeaderAt(seg.Bytes())
	q := &MPMC{
		seg: seg, h: h, cells: cellsAt(seg.Bytes(), g.Cells, g.CellBytes), size: uint64(g.Cells), payload: g.Payload,
	}
	q.notEmpty, q.notFull = h.Bells(true)
	return q
}

// FD returns the queue's file, to be handed to other processes. It belongs to the queue.
func (q *MPMC) FD() int { return q.seg.FD() }

// Cells returns how many messages the queue has room for.
func (q *MPMC) Cells() int { return int(q.size) }

// Payload returns the most bytes of one message.
func (q *MPMC) Payload() int { return q.payload }

// Len returns how many messages are, or were a moment ago, in the queue, including any being written or read.
func (q *MPMC) Len() int { return int(min(q.h.Tail.Load()-q.h.Head.Load(), q.size)) }

// Shut ends the puts and wakes all waiters. Messages in the queue can still be taken. A Put that began before may still succeed.
func (q *MPMC) Shut() {
	q.h.Closed.Store(1)
	q.notEmpty.Kick()
	q.notFull.Kick()
}

// IsShut reports whether the queue has been shut.
func (q *MPMC) IsShut() bool { return q.h.Closed.Load() != 0 }

// over reports whether the queue is shut and no producer is about to finish a message at its head.
func (q *MPMC) over() bool {
	return q.IsShut() && word(q.cells.at(q.h.Head.Load()).ctl.Load()).state() != hostabi.RingWriting
}

// Close unmaps the queue and closes its file; other processes may continue. No other call may be under way or follow.
func (q *MPMC) Close() error { return q.seg.Close() }

// End is a queue as one thread uses it: one goroutine at a time.
type End struct {
	q       *MPMC
	owner   uint16
	putting fifo.Waiter
	getting fifo.Waiter
	one     [1]Item
}

// As returns an end for an owner, from 1 to MaxOwner. Concurrent users of the queue must have different owners,
// across all processes; an id may be reused only after Recover. By convention an id is a peer's index (6 bits) and
// its epoch (6 bits), so that it differs from its predecessor's.
func (q *MPMC) As(owner uint16) *End {
	e := &End{q: q, owner: owner & ownerMask, putting: fifo.NewWaiter(&q.notFull), getting: fifo.NewWaiter(&q.notEmpty)}
	e.getting.Worth = int(q.size / 2)
	return e
}

// Put puts a message, waiting for room for at most the timeout: 0 means that it does not block, negative that there
// is no limit. Errors: ErrFull, ErrShut, ErrTooLarge.
func (e *End) Put(item Item, timeout time.Duration) error {
	e.one[0] = item
	err := e.PutMany(e.one[:], timeout)
	e.one[0].Payload = nil
	return err
}

// PutMany puts a batch of at most MaxRingBatch messages, all of them or none, next to each other, waiting as Put
// does. A batch larger than the queue is ErrTooLarge.
func (e *End) PutMany(items []Item, timeout time.Duration) error {
	if err := e.q.checkBatch(items); err != nil || len(items) == 0 {
		return err
	}
	if e.q.IsShut() {
		return ErrShut
	}
	if !e.put(items) && !e.waitPut(items, timeout) {
		if e.q.IsShut() {
			return ErrShut
		}
		return ErrFull
	}
	e.putting.Moved += len(items)
	if e.q.notEmpty.Armed() {
		e.q.notEmpty.Ring()
	}
	return nil
}

func (q *MPMC) checkBatch(items []Item) error {
	if len(items) > hostabi.MaxRingBatch || uint64(len(items)) > q.size {
		return fmt.Errorf("batch of %d messages, at most %d: %w", len(items), min(hostabi.MaxRingBatch, q.size), ErrTooLarge)
	}
	for i := range items {
		if len(items[i].Payload) > q.payload {
			return fmt.Errorf("message of %d bytes, at most %d: %w", len(items[i].Payload), q.payload, ErrTooLarge)
		}
	}
	return nil
}

// waitPut tries until it succeeds, the time is up or the queue is shut.
func (e *End) waitPut(items []Item, timeout time.Duration) bool {
	return e.putting.Wait(timeout, func() bool { return e.put(items) }, e.q.IsShut)
}

// Get takes the oldest message, waiting for one for at most the timeout as Put does. buf must have room for
// Payload() bytes; the item's payload is the part of it that the message fills. Errors: ErrEmpty, ErrShut,
// ErrTooLarge.
func (e *End) Get(buf []byte, timeout time.Duration) (Item, error) {
	e.one[0].Payload = buf
	_, err := e.GetMany(e.one[:], timeout)
	item := e.one[0]
	e.one[0].Payload = nil
	if err != nil {
		return Item{}, err
	}
	return item, nil
}

// GetMany takes the oldest messages, at least one and as many as there are and fit, but not more than MaxRingBatch,
// and returns how many. It waits for the first as Get does. The payload of each item must have the capacity for
// Payload() bytes; its length becomes the message's.
func (e *End) GetMany(items []Item, timeout time.Duration) (int, error) {
	items = items[:min(len(items), hostabi.MaxRingBatch)]
	for i := range items {
		if cap(items[i].Payload) < e.q.payload {
			return 0, fmt.Errorf("messages of %d bytes, room for %d: %w", e.q.payload, cap(items[i].Payload), ErrTooLarge)
		}
	}
	if len(items) == 0 {
		return 0, nil
	}
	n := e.tryGet(items)
	if n == 0 {
		n = e.waitGet(items, timeout)
	}
	if n == 0 {
		if !e.q.over() {
			return 0, ErrEmpty
		}
		// A message put before Shut may have arrived after the last look.
		if n = e.tryGet(items); n == 0 {
			return 0, ErrShut
		}
	}
	e.getting.Moved += n
	e.q.ringAfterGet()
	return n, nil
}

// ringAfterGet wakes producers that wait when half of the queue is empty, so that they have enough to do, and
// another consumer if there is enough for more than one.
func (q *MPMC) ringAfterGet() {
	if q.notFull.Armed() && q.h.Tail.Load()-q.h.Head.Load() <= q.size/2 {
		q.notFull.Ring()
	}
	if q.notEmpty.Armed() && q.h.Tail.Load() != q.h.Head.Load() {
		q.notEmpty.Ring()
	}
}

// waitGet tries until it succeeds, the time is up or the queue is shut.
func (e *End) waitGet(items []Item, timeout time.Duration) int {
	n := 0
	e.getting.Wait(timeout, func() bool { n = e.tryGet(items); return n > 0 }, e.q.over)
	return n
}

// Counters returns the system calls made for the queue so far, if no process falsified them.
func (q *MPMC) Counters() Counters { return q.h.Counters() }

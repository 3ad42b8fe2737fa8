package ring

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// SPSC is a ring of hostabi.Messages with one producer and one consumer, in one process or in two. Put and
// WaitRoom belong to the producer, Get and Wait to the consumer: one goroutine each at a time. Everything else may
// be called from any goroutine, but none of it after Close.
//
// Each end keeps its own position in private memory and publishes it; it rejects impossible positions of the other.
type SPSC struct {
	seg      *shm.Segment
	h        *header
	cells    []hostabi.Message
	size     uint64
	notEmpty bell
	notFull  bell
	shut     atomic.Bool // by this process: the peer cannot take that back

	_        [128]byte
	tail     uint64 // producer: messages put
	headSeen uint64 // producer: messages taken, as far as known
	putting  waiter

	_        [128]byte
	head     uint64 // consumer: messages taken
	tailSeen uint64 // consumer: messages put, as far as known
	getting  waiter

	_      [128]byte
	nudged atomic.Bool

	mu     sync.Mutex // keeps the memory mapped under Nudge and Shut
	closed bool
}

// New makes an empty ring with the given number of cells, a power of two. The name shows up in
// /proc/*/maps.
func New(name string, cells int) (*SPSC, error) {
	g := geometryOf(cells)
	seg, err := createSegment(name, g)
	if err != nil {
		return nil, err
	}
	return newSPSC(seg, g), nil
}

// Open opens one end of a ring that another process made. It takes ownership of the file, also on an error:
// ErrLayout, or one of shm.Open's.
func Open(fd int) (*SPSC, error) {
	seg, g, err := openSegment(fd, hostabi.RingMessages)
	if err != nil {
		return nil, err
	}
	r := newSPSC(seg, g)
	r.tail, r.head = r.h.tail.Load(), r.h.head.Load()
	r.headSeen, r.tailSeen = r.head, r.tail
	if used := r.tail - r.head; used > r.size {
		err := fmt.Errorf("%w: %d messages in %d cells", ErrLayout, used, r.size)
		return nil, fmt.Errorf("ring of file %d: %w", fd, errors.Join(err, r.Close()))
	}
	return r, nil
}

// newSPSC returns an end of an empty ring.
func newSPSC(seg *shm.Segment, g geometry) *SPSC {
	h := headerAt(seg.Bytes())
	r := &SPSC{
		seg: seg, h: h, cells: messagesAt(seg.Bytes(), g.cells), size: uint64(g.cells),
	}
	r.notEmpty, r.notFull = h.bells()
	r.putting, r.getting = newWaiter(&r.notFull), newWaiter(&r.notEmpty)
	return r
}

// FD returns the ring's file, to be handed to the process with the other end. It belongs to the ring.
func (r *SPSC) FD() int { return r.seg.FD() }

// Put copies as many messages as there is room for into the ring, in order, and returns how many: 0 if it is full
// or shut. It does not block, and makes at most one system call, to wake a consumer that sleeps.
func (r *SPSC) Put(ms []hostabi.Message) int {
	n := min(uint64(len(ms)), r.room(uint64(len(ms))))
	if n == 0 || r.IsShut() {
		return 0
	}
	at := r.tail & (r.size - 1)
	if n == 1 {
		r.cells[at] = ms[0]
	} else {
		first := copy(r.cells[at:], ms[:n])
		copy(r.cells, ms[first:n])
	}
	r.tail += n
	r.h.tail.Store(r.tail)
	if r.notEmpty.armed() {
		r.notEmpty.ring()
	}
	return int(n)
}

// room returns how many cells are free, as far as the producer knows; it looks again if that is less than wanted.
// A head that goes backwards or past the tail is ignored.
func (r *SPSC) room(wanted uint64) uint64 {
	free := r.size - (r.tail - r.headSeen)
	if free >= wanted && free > 0 {
		return free
	}
	if head := r.h.head.Load(); head-r.headSeen <= r.tail-r.headSeen {
		r.headSeen = head
	}
	return r.size - (r.tail - r.headSeen)
}

// Get copies the oldest messages to dst, as many as there are and fit, and returns how many. It does not block, and
// makes at most one system call: a producer that sleeps is woken when half of the ring is empty, so that it has
// something to do.
func (r *SPSC) Get(dst []hostabi.Message) int {
	n := min(uint64(len(dst)), r.available())
	if n == 0 {
		return 0
	}
	at := r.head & (r.size - 1)
	if n == 1 {
		dst[0] = r.cells[at]
	} else {
		first := copy(dst[:n], r.cells[at:])
		copy(dst[first:n], r.cells)
	}
	r.head += n
	r.h.head.Store(r.head)
	if r.notFull.armed() && r.refresh() <= r.size/2 {
		r.notFull.ring()
	}
	return int(n)
}

// available returns how many messages there are as far as the consumer knows; it looks again if that is none.
func (r *SPSC) available() uint64 {
	if n := r.tailSeen - r.head; n > 0 {
		return n
	}
	return r.refresh()
}

// refresh looks how many messages there are. A tail that goes backwards or claims more than the ring holds is
// ignored.
func (r *SPSC) refresh() uint64 {
	if tail := r.h.tail.Load(); tail-r.tailSeen <= r.size-(r.tailSeen-r.head) {
		r.tailSeen = tail
	}
	return r.tailSeen - r.head
}

// Wait blocks the consumer until there are messages, the ring is shut, Nudge is called, or the time is up;
// negative means no limit. It reports whether there are messages.
func (r *SPSC) Wait(d time.Duration) bool {
	if r.available() > 0 {
		return true
	}
	if d == 0 || r.nudged.Swap(false) || r.IsShut() {
		return r.refresh() > 0
	}
	r.getting.wait(d, func() bool { return r.refresh() > 0 }, func() bool { return r.nudged.Swap(false) || r.IsShut() })
	return r.refresh() > 0
}

// WaitRoom blocks the producer until there is room, the ring is shut, or the time is up; negative means no limit.
// It reports whether there is room.
func (r *SPSC) WaitRoom(d time.Duration) bool {
	if r.room(1) > 0 {
		return true
	}
	if d == 0 || r.IsShut() {
		return false
	}
	return r.putting.wait(d, func() bool { return r.room(1) > 0 }, r.IsShut)
}

// SetSpin says whether Wait and WaitRoom spin before they sleep, as they do at first where there is more than one
// processor. A process whose goroutines keep all its processors busy should not. It must be called before either
// end begins.
func (r *SPSC) SetSpin(on bool) {
	r.getting.setSpin(on)
	r.putting.setSpin(on)
}

// Nudge makes the consumer's Wait return, the next one if none is under way. It concerns consumers in this process
// only, and does nothing after Close.
func (r *SPSC) Nudge() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.nudged.Store(true)
	if r.notEmpty.armed() {
		r.notEmpty.ring()
	}
}

// Shut ends the puts and wakes both ends. Messages in the ring can still be taken. Either end may call it, any number of times.
func (r *SPSC) Shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.shut.Store(true)
	r.h.closed.Store(1)
	r.notEmpty.kick()
	r.notFull.kick()
}

// IsShut reports whether either end has shut the ring. Messages put before can be taken as long as Get finds any.
func (r *SPSC) IsShut() bool { return r.h.closed.Load() != 0 || r.shut.Load() }

// Len returns how many messages are in the ring, or were a moment ago.
func (r *SPSC) Len() int {
	return int(min(r.h.tail.Load()-r.h.head.Load(), r.size))
}

// Close unmaps the ring and closes its file; the other end may continue. Only Nudge and Shut may be under way, or follow.
func (r *SPSC) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("ring: %w", shm.ErrClosed)
	}
	r.closed = true
	return r.seg.Close()
}

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

// Messages is a ring of hostabi.Messages with one producer and one consumer, in one process or in two. Put and
// WaitRoom belong to the producer, Get and Wait to the consumer: one goroutine each at a time. Everything else may
// be called from any goroutine, but none of it after Close.
//
// Each end keeps its own position to itself and publishes it; of the other's it believes only what is possible.
type Messages struct {
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

// NewMessages makes an empty ring with the given number of cells, a power of two. The name shows up in
// /proc/*/maps.
func NewMessages(name string, cells int) (*Messages, error) {
	g := messagesGeometry(cells)
	seg, err := create(name, g, nil)
	if err != nil {
		return nil, err
	}
	return newMessages(seg, g), nil
}

// OpenMessages opens one end of a ring that another process made. It takes the file over, also if it returns an
// error: ErrLayout, or one of shm.Open's.
func OpenMessages(fd int) (*Messages, error) {
	seg, g, err := open(fd, hostabi.RingMessages)
	if err != nil {
		return nil, err
	}
	r := newMessages(seg, g)
	r.tail, r.head = r.h.tail.Load(), r.h.head.Load()
	r.headSeen, r.tailSeen = r.head, r.tail
	if used := r.tail - r.head; used > r.size {
		err := fmt.Errorf("%w: %d messages in %d cells", ErrLayout, used, r.size)
		return nil, fmt.Errorf("ring of file %d: %w", fd, errors.Join(err, r.Close()))
	}
	return r, nil
}

// newMessages returns an end of an empty ring.
func newMessages(seg *shm.Segment, g geometry) *Messages {
	h := headerAt(seg.Bytes())
	r := &Messages{
		seg: seg, h: h, cells: messagesAt(seg.Bytes(), g.cells), size: uint64(g.cells),
		notEmpty: bell{&h.notEmpty, &h.emptyWaits, &h.emptyWakes, false, nil},
		notFull:  bell{&h.notFull, &h.fullWaits, &h.fullWakes, false, nil},
	}
	r.putting, r.getting = newWaiter(&r.notFull), newWaiter(&r.notEmpty)
	return r
}

// FD returns the ring's file, to be handed to the process with the other end. It belongs to the ring.
func (r *Messages) FD() int { return r.seg.FD() }

// Cells returns how many messages the ring has room for.
func (r *Messages) Cells() int { return int(r.size) }

// Put copies as many messages as there is room for into the ring, in order, and returns how many: 0 if it is full
// or shut. It does not block, and makes at most one system call, to wake a consumer that sleeps.
func (r *Messages) Put(ms []hostabi.Message) int {
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

// room returns how many cells are free, as far as the producer knows; it looks anew if that is less than wanted. A
// head that goes backwards or past the tail is none: what was known before stays.
func (r *Messages) room(wanted uint64) uint64 {
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
func (r *Messages) Get(dst []hostabi.Message) int {
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

// available returns how many messages there are as far as the consumer knows; it looks anew if that is none.
func (r *Messages) available() uint64 {
	if n := r.tailSeen - r.head; n > 0 {
		return n
	}
	return r.refresh()
}

// refresh looks how many messages there are. A tail that goes backwards or claims more than the ring holds is none:
// what was known before stays.
func (r *Messages) refresh() uint64 {
	if tail := r.h.tail.Load(); tail-r.tailSeen <= r.size-(r.tailSeen-r.head) {
		r.tailSeen = tail
	}
	return r.tailSeen - r.head
}

// Wait blocks the consumer until there are messages, the ring is shut, somebody calls Nudge, or the time is up;
// negative means no limit. It reports whether there are messages.
func (r *Messages) Wait(d time.Duration) bool {
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
func (r *Messages) WaitRoom(d time.Duration) bool {
	if r.room(1) > 0 {
		return true
	}
	if d == 0 || r.IsShut() {
		return false
	}
	return r.putting.wait(d, func() bool { return r.room(1) > 0 }, r.IsShut)
}

// SetSpin says whether Wait and WaitRoom spin before they sleep, as they do at first where there is more than one
// processor. A process whose goroutines keep all its processors busy with something else should not. It belongs to
// the goroutine of both ends, before they begin.
func (r *Messages) SetSpin(on bool) {
	r.getting.setSpin(on)
	r.putting.setSpin(on)
}

// Nudge makes the consumer's Wait return, the next one if none is under way. It concerns consumers in this process
// only, and does nothing after Close.
func (r *Messages) Nudge() {
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

// Shut says that nothing more will be put, and wakes both ends. What is in the ring can still be taken. Either end
// may call it, any number of times.
func (r *Messages) Shut() {
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

// IsShut reports whether either end has shut the ring. What was put before can be taken as long as Get finds any.
func (r *Messages) IsShut() bool { return r.h.closed.Load() != 0 || r.shut.Load() }

// Len returns how many messages are in the ring, or were a moment ago.
func (r *Messages) Len() int {
	return int(min(r.h.tail.Load()-r.h.head.Load(), r.size))
}

// Close unmaps the ring and closes its file; the other end may go on. No other call may be under way but Nudge and
// Shut, and none but these may follow.
func (r *Messages) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return fmt.Errorf("ring: %w", shm.ErrClosed)
	}
	r.closed = true
	return r.seg.Close()
}

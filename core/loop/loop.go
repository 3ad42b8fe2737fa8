package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/rlhost/rlhost/hostabi"
)

// ErrRunning is returned by Run and Close while another call of Run is under way.
var ErrRunning = errors.New("loop is running")

// ErrClosed is returned by Run after Close.
var ErrClosed = errors.New("loop is closed")

// drainRounds bounds how often a loop that ends looks again for control messages, so that two slots that answer
// each other for ever cannot keep it from ending.
const drainRounds = 1024

// cacheLines separates the fields that posters write from the loop's own: two lines, because the hardware fetches them in pairs.
const cacheLines = 128

// Target takes the messages posted to a Receiver.
type Target interface {
	// Deliver runs on the loop. m lies in the loop's own buffer and is valid during the call only; Deliver may
	// change it.
	Deliver(m *hostabi.Message)
	// Drop is called instead of Deliver, by Close and on its goroutine, for a message that will not be delivered.
	Drop(m *hostabi.Message)
}

// Func is a Target made of a plain function. Its messages are dropped without notice.
type Func func(*hostabi.Message)

// Deliver calls f.
func (f Func) Deliver(m *hostabi.Message) { f(m) }

// Drop does nothing.
func (f Func) Drop(*hostabi.Message) {}

// item is one queued message and where it goes.
type item struct {
	r *Receiver
	t Target
	m hostabi.Message
}

// forget drops the references of a handled item, so that a buffer that is reused later keeps no component alive.
func (it *item) forget() { it.r, it.t = nil, nil }

// Loop runs the slots of its components one at a time. Use New.
type Loop struct {
	name string
	bell chan struct{} // one token wakes a sleeping loop
	// source: where the loop sleeps instead, set by SetSource from any goroutine.
	source atomic.Pointer[Source]

	// attention: set under mu by posts to the control lane and by the loop's end, cleared under mu by the loop;
	// makes the loop check the control lane before the next data message.
	attention atomic.Bool
	// fresh: set under mu when the data lane turns non-empty, cleared under mu by the loop; lets an idle loop
	// look without taking the lock.
	fresh   atomic.Bool
	running atomic.Bool   // set by Run and Close, so that one of them runs at a time
	runner  atomic.Uint64 // number of the goroutine that owns the loop; 0 if none does
	// own holds a token while the loop has no owner: Run, Close and Do take it before they touch the loop's own fields.
	own     chan struct{}
	stopped atomic.Bool // set under mu by Stop, Fail and a panic, read by the loop

	_       [cacheLines]byte
	mu      sync.Mutex
	data    []item // posted and not yet taken over by the loop
	control []item
	timers  map[*Timer]struct{} // timers that may still fire
	err     error               // the result of Run: the first failure
	broken  bool                // a slot panicked; none runs again
	closed  bool
	asleep  bool // the loop waits for the bell, or is about to

	_         [cacheLines]byte
	batch     []item // data taken over, handled up to batchPos
	batchPos  int
	urgent    []item // control taken over, handled up to urgentPos
	urgentPos int
	ready     []*Receiver // resumed, with a backlog to run before the batch continues
	holding   []*Receiver // receivers with a backlog in either lane
	current   *Receiver   // receiver whose slot runs
	self      *Receiver   // owner of the loop's own timers
}

// New returns a loop that is not running yet. Posts and timers are accepted from now on.
func New(name string) *Loop {
	l := &Loop{
		name: name, bell: make(chan struct{}, 1), own: make(chan struct{}, 1), timers: make(map[*Timer]struct{}),
	}
	l.own <- struct{}{}
	l.self = l.NewReceiver("loop")
	l.current = l.self
	return l
}

// Name returns the name given to New.
func (l *Loop) Name() string { return l.name }

// Run runs slots on the calling goroutine until Stop, Fail, a panic in a slot, or the end of ctx. Messages in
// the control lane are handled before it returns (but not after a panic), data that is still queued stays
// queued. It returns nil after Stop, the error given to Fail, a *PanicError, or the cause of ctx's end.
//
// Run may be called again after ctx ended it; after Stop, Fail or a panic it ends at once in the same way.
func (l *Loop) Run(ctx context.Context) (err error) {
	if !l.running.CompareAndSwap(false, true) {
		return fmt.Errorf("loop %q: %w", l.name, ErrRunning)
	}
	defer l.running.Store(false)
	l.enter()
	defer l.leave()
	if err := l.usable(); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, l.interrupt)()
	defer func() {
		if v := recover(); v != nil {
			err = l.failPanic(v)
		}
	}()
	l.serve(ctx)
	return l.reason(ctx)
}

// Stop ends Run, also one that is called later. It does not wait.
func (l *Loop) Stop() { l.end(nil) }

// Stopped reports whether Run has ended for good, or will at once. Any goroutine.
func (l *Loop) Stopped() bool { return l.stopped.Load() }

// Fail ends Run, which then returns err wrapped with the loop's name. The first failure counts (a panic after it is
// joined to it); nil is Stop.
func (l *Loop) Fail(err error) {
	if err != nil {
		err = fmt.Errorf("loop %q: %w", l.name, err)
	}
	l.end(err)
}

// Close drops every message that is still queued, stops all timers and refuses later posts. Call it once Run has
// returned for the last time; while Run is under way it returns ErrRunning and does nothing.
func (l *Loop) Close() error {
	if !l.running.CompareAndSwap(false, true) {
		return fmt.Errorf("close loop %q: %w", l.name, ErrRunning)
	}
	defer l.running.Store(false)
	l.enter()
	defer l.leave()
	l.mu.Lock()
	l.closed = true
	queued := [][]item{l.urgent[l.urgentPos:], l.control, l.batch[l.batchPos:], l.data}
	timers := l.timers
	l.urgent, l.control, l.batch, l.data, l.timers = nil, nil, nil, nil, nil
	l.urgentPos, l.batchPos, l.ready = 0, 0, nil
	holding := l.holding
	l.holding = nil
	l.mu.Unlock()
	for t := range timers {
		t.Stop()
	}
	for _, r := range holding {
		r.urgent.drop()
		r.backlog.drop()
	}
	for _, items := range queued {
		for i := range items {
			items[i].t.Drop(&items[i].m)
		}
	}
	return nil
}

// post queues one message on the data lane, and reports whether loop and receiver are open.
func (l *Loop) post(r *Receiver, t Target, m *hostabi.Message) bool {
	l.mu.Lock()
	if l.closed || r.closed {
		l.mu.Unlock()
		return false
	}
	if len(l.data) == 0 {
		l.fresh.Store(true)
	}
	l.data = extend(l.data)
	it := &l.data[len(l.data)-1]
	it.r, it.t, it.m = r, t, *m
	wake := l.asleep
	l.asleep = false
	l.mu.Unlock()
	if wake {
		l.ring()
	}
	return true
}

// extend makes room for one item, which is then filled in place. Building it first and copying it made a post
// about a fifth slower (BenchmarkPost_ToAnotherLoop, one processor).
func extend(items []item) []item {
	if n := len(items); n < cap(items) {
		return items[:n+1]
	}
	return append(items, item{})
}

func (l *Loop) postControl(r *Receiver, t Target, m *hostabi.Message) bool {
	l.mu.Lock()
	if l.closed || r.closed {
		l.mu.Unlock()
		return false
	}
	l.control = extend(l.control)
	it := &l.control[len(l.control)-1]
	it.r, it.t, it.m = r, t, *m
	wake := l.callAttention()
	l.mu.Unlock()
	if wake {
		l.ring()
	}
	return true
}

// callAttention makes the loop look at its control lane; true means that it sleeps and the caller has to ring
// the bell. The caller must hold mu.
func (l *Loop) callAttention() (wake bool) {
	l.attention.Store(true)
	wake = l.asleep
	l.asleep = false
	return wake
}

func (l *Loop) ring() {
	if s := l.source.Load(); s != nil {
		(*s).Nudge()
		return
	}
	l.ringBell()
}

func (l *Loop) ringBell() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

func (l *Loop) interrupt() {
	l.mu.Lock()
	wake := l.callAttention()
	l.mu.Unlock()
	if wake {
		l.ring()
	}
}

func (l *Loop) end(err error) {
	l.mu.Lock()
	l.stopped.Store(true)
	if l.err == nil {
		l.err = err
	}
	wake := l.callAttention()
	l.mu.Unlock()
	if wake {
		l.ring()
	}
}

// usable returns why Run cannot run slots: the loop is closed, or a slot panicked in an earlier Run. Else it
// makes the loop look at its control lane first, since an earlier Run may have left the flag down.
func (l *Loop) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fmt.Errorf("loop %q: %w", l.name, ErrClosed)
	}
	if l.broken {
		return l.err
	}
	l.attention.Store(true)
	return nil
}

func (l *Loop) failPanic(v any) error {
	p := &PanicError{Loop: l.name, Component: l.current.name, Value: v, Stack: debug.Stack()}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped.Store(true)
	l.broken = true
	if l.err == nil {
		l.err = p
		return p
	}
	l.err = errors.Join(l.err, p)
	return l.err
}

func (l *Loop) reason(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopped.Load() {
		return l.err
	}
	return context.Cause(ctx)
}

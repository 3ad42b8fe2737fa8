package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// maxStateBytes bounds a state from outside.
const maxStateBytes = 8 << 30

// session is one process of a proxy, from its start to its death.
type session struct {
	x       *shared
	process *spawn.Process
	wire    *spawn.Wire
	link    *link.Link
	holder  int
	claims  int           // holder, also after its blocks have been taken back
	states  *spawn.States // that came on the wire
	unwatch func()

	broken     chan error             // one: why the process has to be killed
	current    atomic.Bool            // it is the newest that has begun
	save       func()                 // takes its state for a restart
	atBoundary atomic.Bool            // it waits for the host to be through with a dataset boundary
	refused    atomic.Pointer[string] // the first message that was dropped, and why
	calls      atomic.Int32           // control calls that wait for their answer
	heard      atomic.Uint64          // frames and answers that came from it: signs of life
	since      time.Time              // when it was started
	again      bool                   // it got an earlier process's unfinished messages
	pauses     uint64                 // of the loop: how often it was told to pause
	requests   requests

	mu      sync.Mutex
	asks    map[question]ask // its requests about its own blocks on loan that have yet to get answers
	asked   uint64           // how many there were
	calling uint64           // last number given to a state
	adding  string           // name of the arena that is being made for it
	addCall uint64           // number of its request
	own     map[uint8]bool   // arenas that it was given at its own request
	saving  saving
	metrics metrics
}

// saving is the waiting for a process's state. Its mutex is the session's.
type saving struct {
	ctx    context.Context
	giveUp context.CancelCauseFunc
}

func newSaving() (s saving) {
	s.ctx, s.giveUp = context.WithCancelCause(context.Background())
	return s
}

// giveUp ends the waiting for the process's state, with an error.
func (l *session) giveUp(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.saving.giveUp(why)
	l.saving = newSaving()
}

// untilGivenUp returns a context for the waiting for the process's state.
func (l *session) untilGivenUp() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.saving.ctx
}

// errStopping ends work under way when a component is stopped.
var errStopping = errors.New("the component is being stopped")

// fault notes why the process has to be killed; the supervisor does it. The first reason counts.
func (l *session) fault(err error) {
	select {
	case l.broken <- err:
	default:
	}
}

// errFailed is why a process is killed whose component has failed.
var errFailed = errors.New("its component has failed")

// dismiss ends the process of a component that has failed, which may not end by itself: its unfinished messages then go to its successor.
func (l *session) dismiss() {
	if !l.current.Load() {
		return // its start fails
	}
	ctx, cancel := context.WithTimeoutCause(l.x.running, l.x.runtime.Grace(), spawn.ErrGrace)
	defer cancel()
	_ = l.process.Call(ctx, native.MethodStop, native.Empty{}, nil) // the error that matters is why it failed
	l.fault(overdue{errFailed})
}

// call makes a control call that counts as work that waits for the process.
func (l *session) call(ctx context.Context, method string, request, reply any) error {
	l.calls.Add(1)
	defer l.calls.Add(-1)
	err := l.process.Call(ctx, method, request, reply)
	if err == nil {
		l.heard.Add(1)
	}
	return err
}

// callOnLoop makes a control call while the loop waits, which takes a minute at most, or as long as a start may. A
// process that does nothing meanwhile is found out by the supervisor before.
func (l *session) callOnLoop(method string, request, reply any) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.longest(), spawn.ErrGrace)
	defer cancel()
	return l.call(ctx, method, request, reply)
}

// longest is how long the loop may wait.
func (l *session) longest() time.Duration { return max(l.process.Program.Start, time.Minute) }

func (l *session) sendFrame(f native.Frame, files ...int) {
	if err := l.wire.Send(f, files...); err != nil && !errors.Is(err, os.ErrClosed) {
		l.fault(err)
	}
}

// ask notes that the process asks about a block that it has on loan, and how many answers it gets.
func (l *session) ask(port int, m *hostabi.Message, answers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	l.asks[questionOf(m)] = ask{port: port, split: int(m.Split), number: l.asked, left: answers}
}

// ask is a request of a process that waits for answers.
type ask struct {
	port, split int
	number      uint64 // of the session's
	left        int    // answers still to come
	answered    uint64 // policies that have answered, a bit each
}

// asking returns how many requests of the process have not got all answers: somebody may be writing to its blocks.
func (l *session) asking() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.asks)
}

// answered reports whether m answers a request of the process.
func (l *session) answered(m *hostabi.Message) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := questionOf(m)
	x, ok := l.asks[q]
	if x.left--; x.left > 0 {
		x.answered |= 1 << trajectory.ActRequestOf(m).Policy
		l.asks[q] = x
	} else {
		delete(l.asks, q)
	}
	return ok
}

// credit tells the process that a block is free. It runs wherever the block became free.
func (l *session) credit(block hostabi.Handle) {
	l.link.Post(hostabi.Message{Slot: hostabi.LinkCredit, Handle: block})
}

// unregister ends the set's notifications to the process.
func (l *session) unregister() {
	if l.unwatch != nil {
		l.unwatch()
	}
	if l.holder > 0 {
		l.x.h.Arenas.Credits(l.holder, nil)
	}
}

// catchUp takes the messages that the process has emitted so far: they may still be in the ring, or with the goroutine that took them out.
func (l *session) catchUp() {
	s := l.link.Stats()
	for n := 0; n < hostabi.LinkCells && (s.Available > 0 || s.Delivering); n++ {
		l.link.Nudge() // that goroutine may go to sleep before it is this one's turn
		l.link.Poll()
		s = l.link.Stats()
	}
}

// idle takes the process's messages, and reports whether it has finished with its own. A process that cannot be told
// to pause must have no open requests either.
func (l *session) idle(pauses bool) bool {
	for range hostabi.LinkCells {
		s := l.link.Stats()
		if s.Available == 0 && !s.Delivering {
			return s.Unacked == 0 && s.Queued == 0 && (pauses || s.Open == 0 && l.asking() == 0)
		}
		l.link.Nudge() // a goroutine that waits for messages may have it
		l.link.Poll()
	}
	return false
}

// describeEnd says how the process ended, for the log.
func (l *session) describeEnd() string {
	return fmt.Sprintf("process %d %s", l.process.PID(), l.process.End())
}

// release releases a session: its process, if there is one, must be dead or is killed now. Messages are left to the caller.
func (l *session) release() {
	l.requests.lose()
	if l.process != nil {
		l.process.Kill()
		<-l.process.Died()
	}
	l.unregister()
	if l.link != nil {
		l.link.Stop()
	}
	if l.process != nil {
		if err := l.process.Close(); err != nil {
			l.x.h.Log.Warn("cleaning up after a process", "err", err)
		}
	}
	l.states.Close()
	if l.holder > 0 {
		if _, err := l.x.h.Arenas.Sweep(l.holder); err != nil {
			l.x.h.Log.Warn("blocks of a dead process", "err", err)
		}
		l.holder = 0
	}
}

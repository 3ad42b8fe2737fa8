package proxy

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// proxy represents a component that runs in a process. It runs on a loop of the host as any component does; its
// slots send to the process, and it emits the process's messages.
//
// Three parties work on it: the loop (slots, Snapshot), the goroutine that takes messages out of the ring (deliver, control;
// usually the loop's), and its supervisor, which replaces one session, which is one process, by the next. Lock order:
// proxy.mu, session.mu, then the locks of link and arena.
type proxy struct {
	shared   shared
	snapshot bool // its state can be saved
	pauses   bool // it pauses when it is asked to
	cuts     bool // it may be able to abandon its work

	cut atomic.Bool // the run is cut

	pause  *pause         // of the loop: the pause under way or reached; nil without one
	asking sync.WaitGroup // goroutines that wait for the process to pause

	link   atomic.Pointer[link.Link] // of the newest session; messages wait in it
	ended  chan struct{}             // closed when the supervisor has ended
	stop   sync.Once
	stopFn error

	session  *session       // the newest; nil before Start
	state    string         // one of component.ProcessRunning and its like
	restarts int            // so far
	waiting  []link.Pending // messages that came while there was no link
	saved    *saved         // newest state
	began    losing         // the component's state before its first process
	paused   bool           // the Receiver is, because there is no process
}

// saved is a state that a process can continue from.
type saved struct {
	bytes    []byte
	at       time.Time
	finished uint64 // messages that the session it is from had finished with; 0 for an older one's
	from     *session
	kept     losing
}

// losing tells the host that the component has gone back to a state, with the messages that it gets again; see component.Host.
type losing func(again []hostabi.Message)

// keeps notes the present state of the component.
func (x *proxy) keeps() losing {
	if x.shared.h.Keeps == nil {
		return func([]hostabi.Message) {}
	}
	return x.shared.h.Keeps()
}

func (x *proxy) setState(state string) {
	x.shared.mu.Lock()
	x.state = state
	x.shared.mu.Unlock()
	x.tellState()
}

// tellState tells the host that the process has another state. mu is not held.
func (x *proxy) tellState() {
	if x.shared.h.ProcessChanged != nil {
		x.shared.h.ProcessChanged()
	}
}

// newestSession returns the newest session; nil before Start.
func (x *proxy) newestSession() *session {
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	return x.session
}

func (x *proxy) countRestart() {
	x.shared.meters.restarts.Inc()
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	x.restarts++
}

// Process returns the process that the component runs in. Any goroutine.
func (x *proxy) Process() component.Process {
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	p := component.Process{State: x.state, Restarts: x.restarts}
	if x.session != nil && x.state == component.ProcessRunning {
		p.PID, p.Unfinished, p.Holder = x.session.process.PID(), x.session.link.Stats().Unacked, x.session.claims
		if refused := x.session.refused.Load(); refused != nil {
			p.Refused = *refused
		}
	}
	return p
}

// Overdue has the process killed and started again, which gives it the requests again that it has not answered; see component.Owing.
func (x *proxy) Overdue(err error) {
	if l := x.newestSession(); l != nil {
		l.fault(overdue{err})
	}
}

// overdue is why a process is killed that has not broken the protocol.
type overdue struct{ error }

// GiveUp ends a Snapshot that waits for the process. Any goroutine.
func (x *proxy) GiveUp(why error) {
	if l := x.newestSession(); l != nil {
		l.giveUp(why)
	}
}

// Dismiss has the process killed, which none follows. Any goroutine.
func (x *proxy) Dismiss(why error) {
	x.shared.mu.Lock()
	x.shared.failed = true
	x.shared.mu.Unlock()
	if l := x.newestSession(); l != nil {
		l.fault(overdue{why})
	}
}

// CatchUp delivers the messages that the process has emitted so far. Any goroutine.
func (x *proxy) CatchUp() {
	l := x.newestSession()
	if l != nil {
		l.catchUp()
	}
}

func (x *proxy) keepState(s *saved) {
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	x.saved = s
}

// Snapshot asks the process for the component's state.
func (x *proxy) Snapshot() (component.State, error) {
	if !x.snapshot {
		return component.State{}, fmt.Errorf("%w: plugin %q does not offer it", component.ErrNoSnapshot, x.shared.program.Name)
	}
	l := x.newestSession()
	if l == nil {
		return component.State{}, fmt.Errorf("%w: there is no process", component.ErrNoSnapshot)
	}
	if x.cut.Load() {
		return x.snapshotOfCut(l)
	}
	raw, err := l.fetchState(l.longest())
	if err != nil {
		return component.State{}, err
	}
	x.keepState(&saved{bytes: raw, at: time.Now(), finished: l.finishedNow(), from: l, kept: x.keeps()})
	return component.DecodeState(raw)
}

// Restore gives the process a state.
func (x *proxy) Restore(s component.State) error {
	raw, err := component.EncodeState(s)
	if err != nil {
		return err
	}
	l := x.newestSession()
	if l == nil {
		return errors.New("there is no process")
	}
	if err := l.giveState(raw); err != nil {
		return err
	}
	x.keepState(&saved{bytes: raw, at: time.Now(), from: l, kept: x.keeps()})
	return nil
}

// saveNow takes the state at a dataset boundary if the last one is old enough. A failure is no reason to end the
// run: the state is only for the case that the process dies.
func (x *proxy) saveNow(l *session) {
	x.shared.mu.Lock()
	recent := x.saved != nil && x.saved.from == l && time.Since(x.saved.at) < x.shared.program.Snapshot
	x.shared.mu.Unlock()
	if !x.snapshot || x.shared.program.Snapshot < 0 || recent {
		return
	}
	if _, err := x.Snapshot(); err != nil && !errors.Is(err, component.ErrNoSnapshot) {
		x.shared.h.Log.Warn("the state for a restart was not saved", "err", err)
	}
}

// pause is a Pause of a proxy. It belongs to the loop.
type pause struct {
	rested func() // nil once it was called
	timer  *loop.Timer
	asked  *session // that was told to pause
	number uint64   // of that request
	done   bool     // the component in it has said that it has paused
	held   *session // that is given nothing more
}

package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// life is one process of a proxy, from its start to its death.
type session struct {
	x       *proxy
	process *spawn.Process
	wire    *spawn.Wire
	link    *link.Link
	holder  int
	claims  int // holder, also after its blocks have been taken back
	unwatch func()

	broken     chan error    // one: why the process has to be killed
	atBoundary atomic.Bool   // it waits for the host to be through with a dataset boundary
	rejected   atomic.Bool   // a message was dropped
	calls      atomic.Int32  // control calls that wait for their answer
	heard      atomic.Uint64 // frames and answers that came from it: signs of life
	since      time.Time     // when it was started
	pauses     uint64        // of the loop: how often it was told to come to rest

	mu      sync.Mutex
	asks    map[question]struct{} // its requests about its own blocks on loan that nobody has answered
	states  map[uint64]*os.File   // memory files that came on the wire, by call
	came    chan struct{}         // closed, and replaced, when a state comes
	calling uint64                // last number given to a state
	adding  string                // name of the arena that is being made for it
	addCall uint64                // number of its request
	own     map[uint8]bool        // arenas that it was given at its own request
	stats   statsSeen
}

// maxStates is how many states may lie around that nobody has asked for.
const maxStates = 4

// live starts a process and the component in it. After an error nothing is left of it.
func (x *proxy) startSession() (*session, error) {
	holder, err := x.h.Arenas.Grant()
	if err != nil {
		return nil, err
	}
	l := &session{
		x: x, holder: holder, claims: holder, broken: make(chan error, 1), since: time.Now(), came: make(chan struct{}),
		asks: map[question]struct{}{}, states: map[uint64]*os.File{}, own: map[uint8]bool{}, stats: newStatsSeen(),
	}
	if err := l.start(); err != nil {
		l.release()
		return nil, err
	}
	return l, nil
}

// start starts the process, configures the component and starts it.
func (l *session) start() error {
	x := l.x
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() { // Stop ends a start that takes long
		select {
		case <-x.quit:
			cancel(errStopping)
		case <-ctx.Done():
		}
	}()
	p, err := x.runtime.Start(ctx, x.program, spawn.StartOptions{
		Name: x.h.Name, Log: x.h.Log, Handle: l.handle, Broken: l.fault,
		Before: func(w *spawn.Wire) error {
			l.wire = w
			l.unwatch = x.h.Arenas.Watch(l.announce)
			return nil
		},
	})
	if err != nil {
		return err
	}
	l.process = p
	limited, end := context.WithTimeoutCause(ctx, p.Program.Start, spawn.ErrSlow)
	defer end()
	var configured native.Configured
	if err := l.call(limited, native.MethodConfigure, x.configuration(l.holder), &configured); err != nil {
		return err
	}
	x.setFlow(configured.Flow)
	if err := configErrors(configured.Errors); err != nil {
		return err
	}
	p.Took.Configure = p.Took.Part()
	if err := l.connect(); err != nil {
		return err
	}
	if err := l.call(limited, native.MethodStart, native.Empty{}, nil); err != nil {
		return err
	}
	p.Took.Start = p.Took.Part()
	x.h.Log.Debug("plugin process has started", "pid", p.PID(), "took", p.Took)
	return nil
}

// errStopping ends what goes on when a component is stopped.
var errStopping = errors.New("the component is being stopped")

// connect makes the link. Nothing moves on it before proxy.begin.
func (l *session) connect() (err error) {
	x := l.x
	l.link, err = link.New(link.Config{
		Name: x.h.Name, Out: l.process.In, In: l.process.Out, Host: true,
		Sends: ports(x.kind.Slots), Receives: ports(x.kind.Signals),
		Arenas: x.h.Arenas, Receiver: x.h.Receiver, Limit: x.limit, Window: hostabi.LinkWindow,
		Deliver: l.deliver, Control: l.control, Fault: l.fault,
	})
	if err == nil {
		x.h.Arenas.Credits(l.holder, l.credit)
	}
	return err
}

// credit tells the process that a block is free. It runs wherever the block became free.
func (l *session) credit(block hostabi.Handle) {
	l.link.Post(hostabi.Message{Slot: hostabi.LinkCredit, Handle: block})
}

// unregister ends what the set of arenas tells the process of.
func (l *session) unregister() {
	if l.unwatch != nil {
		l.unwatch()
	}
	if l.holder > 0 {
		l.x.h.Arenas.Credits(l.holder, nil)
	}
}

func ports(list []native.Port) []link.Port {
	out := make([]link.Port, len(list))
	for i, p := range list {
		out[i] = link.Port{Name: p.Name, OnLoan: p.OnLoan}
	}
	return out
}

// fault notes why the process has to be killed; the supervisor does it. The first reason counts.
func (l *session) fault(err error) {
	select {
	case l.broken <- err:
	default:
	}
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

// isCurrent reports whether the process is the proxy's newest.
func (l *session) isCurrent() bool {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	return l.x.session == l
}

// ask notes that the process asks about a block that it has on loan.
func (l *session) ask(m *hostabi.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks[questionOf(m)] = struct{}{}
}

// asking returns how many requests of the process nobody has answered: somebody may be writing to its blocks.
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
	_, ok := l.asks[q]
	delete(l.asks, q)
	return ok
}

// begin lets a process take part: it gets what its predecessor has not finished with, and the newest messages of
// slots that only want those.
func (x *proxy) begin(l *session, again []link.Pending) {
	resent := map[int]bool{}
	for i := range again {
		resent[again[i].Port] = true
	}
	var list []link.Pending
	for i := range x.slots {
		if resent[i] {
			continue // the newest is among them
		}
		if p, ok := x.newest(i); ok {
			list = append(list, p)
		}
	}
	x.mu.Lock()
	l.link.Resend(append(append(list, again...), x.waiting...))
	x.waiting, x.session = nil, l
	x.link.Store(l.link)
	x.state = component.ProcessRunning
	rested := x.rested
	x.rested = false
	x.mu.Unlock()
	l.link.Start()
	x.h.Receiver.Control(l.run, hostabi.Message{})
	if rested {
		x.h.Receiver.Resume()
	}
}

// run tells the process that the run has begun: by then a saved state has been restored.
func (l *session) run(*hostabi.Message) { l.link.Post(hostabi.Message{Slot: hostabi.LinkRun}) }

// newest returns the newest message of a latest slot, with a claim for the link.
func (x *proxy) newest(i int) (link.Pending, bool) {
	s := &x.slots[i]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest.Sequence == 0 {
		return link.Pending{}, false
	}
	p := link.Pending{Port: i, Message: s.newest}
	if s.newest.Handle != 0 {
		if x.h.Arenas.Retain(s.newest.Handle) != nil {
			return link.Pending{}, false
		}
		p.Claimed = true
	}
	return p, true
}

// bury releases what is left of a life: its process, if there is one, must be dead or is killed now. Messages are
// the caller's affair.
func (l *session) release() {
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
			l.x.h.Log.Warn("cleaning up behind a process", "err", err)
		}
	}
	l.mu.Lock()
	for call, f := range l.states {
		_ = f.Close()
		delete(l.states, call)
	}
	l.mu.Unlock()
	if l.holder > 0 {
		if _, err := l.x.h.Arenas.Sweep(l.holder); err != nil {
			l.x.h.Log.Warn("blocks of a dead process", "err", err)
		}
		l.holder = 0
	}
}

// describeEnd says how the process ended, for the log.
func (l *session) describeEnd() string {
	return fmt.Sprintf("process %d %s", l.process.PID(), l.process.End())
}

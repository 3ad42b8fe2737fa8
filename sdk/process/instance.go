package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// loopName is the name in errors of the loop. A process has one loop.
const loopName = "process"

// maxReason bounds the text of a failure in bytes.
const maxReason = 64 << 10

// instance is the component that this process runs.
type instance struct {
	server    *server
	component component.Component
	manifest  component.Manifest
	told      native.Configuration
	host      *component.Host
	arenas    *arena.Set
	loop      *loop.Loop
	link      *link.Link
	slots     []*bus.Slot
	stats     *mirror
	loaded    map[string]env.Plugin // environments, by name
	started   bool                  // guarded by server.mu: Start was called
	running   bool                  // guarded by server.mu: the loop has a goroutine

	begun    atomic.Bool // the run has begun: the loop may run
	over     atomic.Bool // the boundary that the loop waits at is over
	stopping atomic.Bool
	ended    chan struct{} // closed when the loop's goroutine has ended

	resumed   chan struct{}    // of the loop: closed by the end of the Pause that is in force; nil without one
	resumedTo uint64           // of the loop: number of the newest Pause that has ended
	handed    []hostabi.Handle // of the loop, and of stop: claimed for this process's successor

	peers peers // its open questions to other components

	mu    sync.Mutex
	calls []func() // guarded by mu: for the loop's goroutine, even while it waits
	done  bool     // guarded by mu: no more calls
}

// newInstance prepares a configured component. Nothing runs yet.
func newInstance(s *server, c component.Component, m component.Manifest, told native.Configuration) (*instance, error) {
	set, err := s.arenas.open(told.Holder)
	if err != nil {
		return nil, err
	}
	x := &instance{
		server: s, component: c, manifest: m, told: told, arenas: set, loop: loop.New(loopName), ended: make(chan struct{}),
		stats: newMirror(stat.NewRegistry(), s.send), loaded: map[string]env.Plugin{},
	}
	x.host = x.newHost(s)
	x.host.Bind(m)
	x.link, err = link.New(link.Config{
		Name: told.Name, Transport: s.transport, Sends: linkPorts(m.Signals), Receives: linkPorts(m.Slots),
		Arenas: set, Receiver: x.host.Receiver, Window: hostabi.LinkWindow,
		Deliver: x.deliver, Control: x.control, Fault: x.fail,
	})
	return x, err
}

func linkPorts(list []component.Port) []link.Port {
	ports := make([]link.Port, len(list))
	for i, p := range list {
		ports[i] = link.Port{Name: p.Name, OnLoan: p.OnLoan}
	}
	return ports
}

// start starts the component and then the goroutine of its loop, which waits until the run begins.
func (x *instance) start() error {
	x.started = true
	for i, p := range x.manifest.Signals {
		x.host.Signal(p.Name).Tap(func(m hostabi.Message) error { return x.link.Send(i, &m) })
	}
	x.arenas.Credits(hostabi.ArenaHost, func(h hostabi.Handle) {
		x.link.Post(hostabi.Message{Slot: hostabi.LinkCredit, Handle: h})
	})
	if err := x.component.Start(x.host); err != nil {
		return err
	}
	for _, p := range x.manifest.Slots {
		slot := x.host.BoundSlot(p.Name)
		if slot == nil {
			return fmt.Errorf("kind %s does not bind its slot %q", x.told.Kind, p.Name)
		}
		x.slots = append(x.slots, slot)
	}
	for i := range x.manifest.Requests {
		if name := x.manifest.Requests[i].Name; x.host.Handles(name) == nil {
			return fmt.Errorf("kind %s does not bind its request %q", x.told.Kind, name)
		}
	}
	x.running = true
	x.link.Start()
	go x.run()
	x.stats.start()
	return nil
}

// run is the goroutine of the loop.
func (x *instance) run() {
	defer close(x.ended)
	x.waitFor(func() bool { return x.begun.Load() || x.link.Stats().Received > 0 })
	var err error
	if !x.stopping.Load() {
		err = x.loop.Run(context.Background())
	}
	x.serveCalls(true)
	if err != nil && !x.stopping.Load() {
		x.fail(err)
	}
}

// waitFor handles the link and the calls of the host until come returns true. On the loop's goroutine.
func (x *instance) waitFor(come func() bool) {
	for {
		x.link.Poll()
		x.serveCalls(false)
		if come() || x.stopping.Load() {
			return
		}
		x.link.Wait()
	}
}

// do runs fn where the component's slots run, between two of them or at a boundary, and returns its error.
func (x *instance) do(fn func() error) error {
	answer := make(chan error, 1)
	x.mu.Lock()
	if x.done {
		x.mu.Unlock()
		return errors.New("the component has ended")
	}
	x.calls = append(x.calls, func() { answer <- guarded(fn) })
	x.mu.Unlock()
	x.host.Receiver.Control(func(*hostabi.Message) { x.serveCalls(false) }, hostabi.Message{})
	x.link.Nudge() // the loop may wait for the end of a boundary
	return <-answer
}

// guarded turns a panic in fn into an error.
func guarded(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = panicError(v)
		}
	}()
	return fn()
}

// serveCalls runs the pending calls.
func (x *instance) serveCalls(last bool) {
	for {
		x.mu.Lock()
		if len(x.calls) == 0 {
			x.done = x.done || last
			x.mu.Unlock()
			return
		}
		call := x.calls[0]
		x.calls = x.calls[1:]
		x.mu.Unlock()
		call()
	}
}

// deliver runs a slot, on the loop.
func (x *instance) deliver(port int, m *hostabi.Message) error {
	x.slots[port].Run(m)
	return nil
}

// control handles a message about the link.
func (x *instance) control(m *hostabi.Message) error {
	switch m.Slot {
	case hostabi.LinkCredit:
		_ = x.arenas.Credit(m.Handle) // it may be stale by now
	case hostabi.LinkBoundaryOver:
		x.over.Store(true)
	case hostabi.LinkRun:
		x.begun.Store(true)
	}
	return nil // from a later version
}

// boundary is Host.Boundary: it waits until the host is done with the boundary, and meanwhile answers its calls.
func (x *instance) boundary() {
	x.over.Store(false)
	x.link.Post(hostabi.Message{Slot: hostabi.LinkBoundary})
	x.waitFor(x.over.Load)
}

// stopRun is Host.Stop.
func (x *instance) stopRun(reason component.StopReason) {
	kinds := map[component.StopReason]uint16{
		component.StopReturn: hostabi.LinkStopReturn, component.StopEnvSteps: hostabi.LinkStopEnvSteps,
		component.StopWallTime: hostabi.LinkStopWall, component.StopOwn: hostabi.LinkStopOwn,
	}
	x.link.Post(hostabi.Message{Slot: hostabi.LinkStop, Kind: kinds[reason]})
}

// fail reports the component's failure to the host, and ends the process.
func (x *instance) fail(err error) {
	reason := strings.TrimPrefix(err.Error(), fmt.Sprintf("loop %q: ", loopName))
	reason = strings.TrimPrefix(reason, x.told.Name+": ")
	x.stats.send()
	if err := x.server.send(native.Frame{Fail: &native.Fail{Reason: shortened(reason)}}); err != nil {
		x.server.log.Error(reason)
	}
	x.server.exit(exitFailed)
}

// request has the component answer a request, between two of its messages: not at a boundary, where it is in the middle of one.
func (x *instance) request(q *native.Question) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(q.WithinNS))
	x.host.Receiver.Control(func(*hostabi.Message) {
		if ctx.Err() == nil {
			x.answer(ctx, cancel, q)
		}
	}, hostabi.Message{})
}

// answer calls the handler, on the component's loop.
func (x *instance) answer(ctx context.Context, done context.CancelFunc, q *native.Question) {
	tell := func(a native.Answer) {
		done()
		a.Call = q.Call
		if err := x.server.send(native.Frame{Answer: &a}); err != nil {
			x.server.log.Error("an answer could not be sent", "request", q.Name, "error", err)
		}
	}
	if x.host.Handles(q.Name) == nil {
		tell(native.Answer{Error: &native.Raised{Text: "this program does not answer the request " + q.Name}})
		return
	}
	x.host.Ask(ctx, q.Name, q.Args, func(reply json.RawMessage, err error) {
		if err != nil {
			tell(native.Answer{Error: x.raised(q.Name, err)})
			return
		}
		tell(native.Answer{Reply: reply})
	}, func() {
		x.server.log.Warn("a handler has answered a request twice: its first answer counts", "request", q.Name)
	})
}

// raised describes the error of a handler to the host.
func (x *instance) raised(name string, err error) *native.Raised {
	var r *component.Raised
	if !errors.As(err, &r) {
		text, none := strings.CutPrefix(err.Error(), component.ErrAnswer.Error()+" ")
		return &native.Raised{Text: shortened(text), Answer: none && errors.Is(err, component.ErrAnswer)}
	}
	if r.Stack != "" {
		x.server.log.Error("a request panicked", "request", name, "panic", r.Text, "stack", r.Stack)
	}
	return &native.Raised{Type: r.Type, Text: shortened(r.Text), Place: r.Place}
}

// shortened bounds a text to the host.
func shortened(text string) string {
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return strings.ToValidUTF8(text, "?")
}

// stop ends the loop and then the component. What leaked is an error.
func (x *instance) stop() error {
	x.stopping.Store(true)
	if x.running {
		x.loop.Stop()
		x.link.Nudge()
		<-x.ended
		x.stats.stop()
	}
	x.link.Stop()
	errs := []error{x.releaseUnsent(), x.releaseHanded(), x.loop.Close(), guarded(x.component.Stop), x.unload()}
	x.stats.send()
	x.arenas.Credits(hostabi.ArenaHost, nil)
	return errors.Join(append(errs, x.arenas.Close())...)
}

// peers are the questions to other components that the host has not answered.
type peers struct {
	mu   sync.Mutex
	made uint64 // how many there were
	open map[uint64]func(json.RawMessage, error)
}

// add keeps the question that the answer belongs to.
func (p *peers) add(answer func(json.RawMessage, error)) (call uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[uint64]func(json.RawMessage, error){}
	}
	p.made++
	p.open[p.made] = answer
	return p.made
}

// take returns the question that an answer belongs to, nil for none.
func (p *peers) take(call uint64) func(json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := p.open[call]
	delete(p.open, call)
	return answer
}

// told hands an answer of the host on.
func (p *peers) told(a *native.Answer) {
	if answer := p.take(a.Call); answer != nil {
		answer(a.Reply, errorOf(a.Error))
	}
}

// askOther is Host.AskOther: the host asks, and answers at the end of the time if nobody else has.
func (x *instance) askOther(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error)) {
	call := x.peers.add(func(reply json.RawMessage, err error) {
		x.host.Receiver.Control(func(*hostabi.Message) { answer(reply, err) }, hostabi.Message{})
		x.link.Nudge() // the loop may wait for a message
	})
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if len(args) > hostabi.MaxRequestBytes {
		x.peers.take(call)(nil, &component.ArgsError{Reason: fmt.Sprintf("the arguments have %d bytes, at most %d", len(args), hostabi.MaxRequestBytes)})
		return
	}
	if err := x.server.send(native.Frame{Ask: &native.Question{Call: call, Name: ask, Args: args, WithinNS: within.Nanoseconds()}}); err != nil {
		x.peers.take(call)(nil, fmt.Errorf("%w: %w", component.ErrLost, err))
	}
}

// toldError is one of our errors with the host's text.
type toldError struct {
	text string
	is   error
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.is }

// errorOf returns the error that the host describes.
func errorOf(r *native.Raised) error {
	switch {
	case r == nil:
		return nil
	case r.Why == native.WhyArgs:
		return &component.ArgsError{Reason: r.Text}
	case r.Why == native.WhyLate:
		return component.ErrLate
	case r.Why == native.WhyLost:
		return component.ErrLost
	case r.Why == native.WhyBusy:
		return &toldError{r.Text, component.ErrBusy}
	case r.Answer:
		return &toldError{r.Text, component.ErrAnswer}
	}
	return &component.Raised{Type: r.Type, Text: r.Text, Place: r.Place}
}

package module

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

// errArena is the error of Host.Arena.
var errArena = errors.New("a module has no arenas of its own yet: run the component as a process, or built in")

// host is the component's view of its host.
type host struct {
	manifest component.Manifest
	identity component.Identity
	slots    []func(*component.Message)
	handlers map[string]func(args []byte) ([]byte, error)
	timers   map[uint32]func()
	asked    map[uint32]func(reply []byte, err error) // by the numbers of their questions
	failed   error
	out      hostabi.ComponentMessage // the message being emitted
	message  component.Message        // the message being handled
	block    block                    // of it
	wants    [][]component.Want       // that the slots declare
}

func newHost(c component.Component, id component.Identity) *host {
	m := c.Manifest()
	h := &host{manifest: m, identity: id, slots: make([]func(*component.Message), len(m.Slots)), handlers: map[string]func([]byte) ([]byte, error){}, timers: map[uint32]func(){}, asked: map[uint32]func([]byte, error){}, wants: wantsOf(c)}
	h.block.host = h
	return h
}

// outcome is the status of the call that ends.
func (h *host) outcome() int32 {
	if h.failed == nil {
		return 0
	}
	return fail(hostabi.StatusInternal, h.failed)
}

// handle runs a slot.
func (h *host) handle(slot uint32, m *hostabi.ComponentMessage) {
	if slot >= uint32(len(h.slots)) || h.slots[slot] == nil {
		h.Fail(fmt.Errorf("slot %d is not bound", slot))
		return
	}
	h.message = component.Message{Kind: m.Kind, T: m.T, Split: m.Split, PolicyVersion: m.PolicyVersion, Inline: m.Inline,
		Sender: component.Sender(m.Sender)}
	if h.block.token = m.Block; m.Block != 0 {
		h.message.Block = &h.block
	}
	if h.block.wants = nil; len(h.wants) > 0 {
		h.block.wants = h.wants[slot]
		h.block.bindings = bindingsAt(m.Columns, len(h.block.wants))
	}
	h.slots[slot](&h.message)
	h.block.token, h.block.wants = 0, nil
}

func (h *host) fire(id uint32) {
	if fn := h.timers[id]; fn != nil {
		fn()
	}
}

func (h *host) Identity() component.Identity { return h.identity }

func find(ports []component.Port, what, name string) int {
	i := slices.IndexFunc(ports, func(p component.Port) bool { return p.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("no %s %q in the manifest", what, name))
	}
	return i
}

func (h *host) Signal(name string) component.Signal {
	return signal{h, uint32(find(h.manifest.Signals, "signal", name))}
}

func (h *host) Slot(name string, fn func(*component.Message)) {
	h.slots[find(h.manifest.Slots, "slot", name)] = fn
}

func (h *host) Handle(name string, fn func(args []byte) ([]byte, error)) {
	if !slices.ContainsFunc(h.manifest.Requests, func(r component.Request) bool { return r.Name == name }) {
		panic(fmt.Sprintf("no request %q in the manifest", name))
	}
	h.handlers[name] = fn
}

// Errors of Host.Request.
var (
	errAsk  = errors.New("this host cannot have modules ask: run the component as a process, or built in")
	errMany = errors.New("too many questions have no answer yet")
	errArgs = errors.New("a question was not accepted: its arguments are too long, or its time is below 0")
)

func (h *host) Request(question string, args []byte, within time.Duration, answer func([]byte, error)) {
	i := slices.IndexFunc(h.manifest.Asks, func(r component.Request) bool { return r.Name == question })
	if i < 0 {
		panic(fmt.Sprintf("the manifest asks no %q", question))
	}
	switch number := ask(uint32(i), args, int64(within)); hostabi.Status(number) {
	case hostabi.StatusUnsupported:
		h.soon(answer, errAsk)
	case hostabi.StatusMemory:
		h.soon(answer, errMany)
	case hostabi.StatusArgument, hostabi.StatusState:
		h.soon(answer, errArgs)
	default:
		h.asked[uint32(number)] = answer
	}
}

// soon gives an answer between two messages.
func (h *host) soon(answer func([]byte, error), err error) {
	h.After(0, func() { answer(nil, err) })
}

// answered hands the answer to a question on.
func (h *host) answered(a *hostabi.AnswerCall, text func(at, n uint32) []byte) {
	answer := h.asked[a.Question]
	delete(h.asked, a.Question)
	if answer == nil {
		return
	}
	if a.Fault == 0 {
		answer(text(a.TextAt, a.TextLen), nil)
		return
	}
	answer(nil, component.NoAnswer(a.Fault, string(text(a.TypeAt, a.TypeLen)), string(text(a.TextAt, a.TextLen)), string(text(a.PlaceAt, a.PlaceLen))))
}

// answer calls the handler of a request. The status is of its error.
func (h *host) answer(request uint32, args []byte) (reply []byte, status hostabi.Status, err error) {
	if request >= uint32(len(h.manifest.Requests)) {
		return nil, hostabi.StatusUnsupported, fmt.Errorf("there is no request %d", request)
	}
	name := h.manifest.Requests[request].Name
	fn := h.handlers[name]
	if fn == nil {
		return nil, hostabi.StatusUnsupported, fmt.Errorf("the request %s has no handler", name)
	}
	reply, err = fn(args)
	if err == nil {
		return reply, 0, h.failed
	}
	status = hostabi.StatusInternal
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		status = hostabi.StatusArgument
	}
	return nil, status, err
}

func (h *host) After(d time.Duration, fn func()) component.Timer { return h.timer(d, 0, fn) }
func (h *host) Every(d time.Duration, fn func()) component.Timer { return h.timer(d, max(d, 1), fn) }

func (h *host) timer(after, every time.Duration, fn func()) component.Timer {
	id := hostTimer(int64(max(after, 0)), int64(every))
	if id < 0 {
		h.Fail(fmt.Errorf("a timer cannot begin: %v", hostabi.Status(id)))
		return timer{h, 0}
	}
	h.timers[uint32(id)] = func() {
		if every == 0 {
			delete(h.timers, uint32(id))
		}
		fn()
	}
	return timer{h, uint32(id)}
}

// timer is a timer of the host's.
type timer struct {
	host *host
	id   uint32
}

func (t timer) Stop() bool {
	delete(t.host.timers, t.id)
	return hostCancel(t.id) == 0
}

func (h *host) Arena(string, int, ...component.Tensor) (component.Arena, error) { return nil, errArena }

func (h *host) Counter(name string) component.Counter {
	return counter{h.declare(hostabi.MetricCounter, name)}
}
func (h *host) Gauge(name string) component.Gauge { return gauge{h.declare(hostabi.MetricGauge, name)} }
func (h *host) Histogram(name string) component.Histogram {
	return histogram{h.declare(hostabi.MetricHistogram, name)}
}

func (h *host) declare(kind hostabi.MetricKind, name string) uint32 {
	id := declare(kind, name)
	if id < 0 {
		h.Fail(fmt.Errorf("the metric %q is not accepted: %v", name, hostabi.Status(id)))
	}
	return uint32(id)
}

type (
	counter   struct{ id uint32 }
	gauge     struct{ id uint32 }
	histogram struct{ id uint32 }
)

func (c counter) Add(n uint64)              { hostReport(c.id, float64(n)) }
func (g gauge) Set(v float64)               { hostReport(g.id, v) }
func (h histogram) Observe(v float64)       { hostReport(h.id, v) }
func (h *host) Log() *slog.Logger           { return slog.New(newLogger(say)) }
func (h *host) TryLog() *slog.Logger        { return slog.New(newLogger(trySay)) }
func (h *host) Stop(r component.StopReason) { hostStop(uint32(stopReasons[r])) }

var stopReasons = map[component.StopReason]hostabi.StopReason{
	component.StopReturn: hostabi.StopForReturn, component.StopEnvSteps: hostabi.StopForEnvSteps, component.StopWallTime: hostabi.StopForWall,
	component.StopOwn: hostabi.StopForOwn,
}

// Fail keeps the first error, which the call that runs returns.
func (h *host) Fail(err error) {
	if h.failed == nil {
		h.failed = err
	}
}

func (h *host) failOn(err error) {
	if err != nil {
		h.Fail(err)
	}
}

// lines is the host's log as a file: the level comes before the text.
type lines struct {
	level slog.Level
	say   func(level uint32, line []byte) // say or trySay; a module that refers to neither imports neither
}

func (l *lines) Write(b []byte) (int, error) {
	if len(b) > 0 {
		l.say(uint32(min(max((l.level+4)/4, 0), 3)), b[:len(b)-1])
	}
	return len(b), nil
}

// logger is the host's log: it writes the text of a record with its attributes. The host adds the time.
type logger struct {
	slog.Handler
	to *lines
}

func newLogger(say func(level uint32, line []byte)) logger {
	to := &lines{say: say}
	plain := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
			return slog.Attr{}
		}
		return a
	}
	return logger{slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: plain}), to}
}

func (l logger) Handle(ctx context.Context, r slog.Record) error {
	l.to.level = r.Level
	return l.Handler.Handle(ctx, r)
}

func (l logger) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logger{l.Handler.WithAttrs(attrs), l.to}
}
func (l logger) WithGroup(name string) slog.Handler { return logger{l.Handler.WithGroup(name), l.to} }

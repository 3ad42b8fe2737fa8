package component

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// Handler answers a request. It is called on the component's loop, between two messages, also while the component is paused, with arguments that
// fit the request's description. It calls answer, or passes it on to be called from any goroutine: with an answer as JSON, or an error. A
// second call is logged and does nothing. ctx ends when nobody waits for the answer any more.
type Handler func(ctx context.Context, args json.RawMessage, answer func(reply json.RawMessage, err error))

// Answer returns a Handler that fills a Q from the arguments and answers with fn's result.
func Answer[Q, R any](fn func(ctx context.Context, q Q) (R, error)) Handler {
	return func(ctx context.Context, args json.RawMessage, answer func(json.RawMessage, error)) {
		var q Q
		if err := json.Unmarshal(args, &q); err != nil {
			answer(nil, &ArgsError{Reason: err.Error()})
			return
		}
		r, err := fn(ctx, q)
		if err != nil {
			answer(nil, err)
			return
		}
		answer(json.Marshal(r))
	}
}

// Handle binds a request of the manifest to its handler. It panics on a name that the manifest does not have.
func (h *Host) Handle(name string, fn Handler) {
	if _, ok := h.manifest.Request(name); !ok {
		panic(fmt.Sprintf("component %s: no request %q in its manifest", h.Name, name))
	}
	h.handlers[name] = fn
}

// HandleAnywhere is Handle for a handler that any goroutine may call, as that of a component which runs in another process.
func (h *Host) HandleAnywhere(name string, fn Handler) {
	h.Handle(name, fn)
	h.anywhere = true
}

// HandlesAnywhere reports whether any goroutine may call the component's handlers.
func (h *Host) HandlesAnywhere() bool { return h.anywhere }

// Handles returns the handler of a request, or nil if Start did not bind one.
func (h *Host) Handles(name string) Handler { return h.handlers[name] }

// DefaultWithin is how long an answer to a component may take where it does not say.
const DefaultWithin = 30 * time.Second

// Request asks a question of the manifest's Asks: the file says which component answers it. It returns at once, and answer is called on the
// component's loop, between two messages and also during a pause: once, with the answer or an error, and not after the component has
// ended. The error wraps ErrLate after within, which is DefaultWithin where it is 0, ErrLost, ErrBusy or ErrAnswer, or is an *ArgsError or a
// *Raised. Any goroutine. It panics on a name that the manifest does not have.
func (h *Host) Request(ask string, args json.RawMessage, within time.Duration, answer func(reply json.RawMessage, err error)) {
	if !slices.ContainsFunc(h.manifest.Asks, func(r hostabi.Request) bool { return r.Name == ask }) {
		panic(fmt.Sprintf("component %s: its manifest asks no %q", h.Name, ask))
	}
	if h.AskOther == nil {
		h.Receiver.Control(func(*hostabi.Message) { answer(nil, ErrUnasked) }, hostabi.Message{})
		return
	}
	if within <= 0 {
		within = DefaultWithin
	}
	h.AskOther(ask, args, within, answer)
}

// Request returns the description of a request.
func (m *Manifest) Request(name string) (r *hostabi.Request, ok bool) {
	i := slices.IndexFunc(m.Requests, func(r hostabi.Request) bool { return r.Name == name })
	if i < 0 {
		return nil, false
	}
	return &m.Requests[i], true
}

// ArgsError says that a request cannot be asked with its arguments.
type ArgsError struct{ Reason, Help string }

// Error returns the reason.
func (e *ArgsError) Error() string { return e.Reason }

// Raised is the error of a handler: its type, its text, and the place in the component's source, where that is known.
type Raised struct {
	Type, Text, Place string
	Stack             string // of a panic, for the log
}

// Error returns type and text.
func (e *Raised) Error() string {
	if e.Type == "" {
		return e.Text
	}
	return e.Type + ": " + e.Text
}

// ErrAnswer is wrapped by the error of an answer that is none.
var ErrAnswer = errors.New("the answer")

// ErrLost is wrapped by the error of a request whose component has ended before it answered.
var ErrLost = errors.New("it has ended before it answered")

// ErrLate is wrapped by the error of a request that was not answered in time.
var ErrLate = errors.New("it did not answer in time")

// ErrUnasked is wrapped by the error of a request that cannot be asked here.
var ErrUnasked = errors.New("components cannot ask each other here")

// ErrBusy is wrapped by the error of a request to a component that has too many to answer.
var ErrBusy = errors.New("too many requests are under way")

// FaultOf describes the error of a question to the component that has asked: its number, and all that is known of it.
func FaultOf(err error) (hostabi.AnswerFault, Raised) {
	var raised *Raised
	told := Raised{Text: err.Error()}
	switch {
	case errors.As(err, &raised):
		return hostabi.AnswerRaised, *raised
	case errors.As(err, new(*ArgsError)):
		return hostabi.AnswerRefused, told
	case errors.Is(err, ErrLate):
		return hostabi.AnswerLate, told
	case errors.Is(err, ErrLost):
		return hostabi.AnswerLost, told
	case errors.Is(err, ErrBusy):
		return hostabi.AnswerBusy, told
	case errors.Is(err, ErrAnswer):
		return hostabi.AnswerNoAnswer, told
	}
	return hostabi.AnswerRaised, told
}

// Ask calls the handler of a request, on the component's loop unless it handles requests anywhere. A panic is a Raised error, and so is any other error of the handler's. Of several
// answers the first counts; each later one is given to again.
func (h *Host) Ask(ctx context.Context, name string, args json.RawMessage, answer func(json.RawMessage, error), again func()) {
	var answered atomic.Bool
	once := func(reply json.RawMessage, err error) {
		if answered.Swap(true) {
			again()
			return
		}
		if err == nil {
			err = checkAnswer(reply)
		}
		answer(reply, err)
	}
	defer func() {
		if v := recover(); v != nil {
			once(nil, panicked(v))
		}
	}()
	fn := h.handlers[name]
	fn(ctx, args, func(reply json.RawMessage, err error) { once(reply, raised(err)) })
}

func checkAnswer(reply json.RawMessage) error {
	switch {
	case len(reply) > hostabi.MaxRequestBytes:
		return fmt.Errorf("%w has %d bytes, at most %d", ErrAnswer, len(reply), hostabi.MaxRequestBytes)
	case !json.Valid(reply):
		return fmt.Errorf("%w is not JSON: %.40q", ErrAnswer, reply)
	}
	return nil
}

// raised tells the type of an error that a handler has returned.
func raised(err error) error {
	var typed *Raised
	var args *ArgsError
	if err == nil || errors.As(err, &typed) || errors.As(err, &args) || errors.Is(err, ErrLost) || errors.Is(err, ErrAnswer) || errors.Is(err, ErrBusy) || errors.Is(err, ErrLate) {
		return err
	}
	inner := err
	for errors.Unwrap(inner) != nil {
		inner = errors.Unwrap(inner)
	}
	kind := strings.TrimPrefix(fmt.Sprintf("%T", inner), "*")
	if kind == "errors.errorString" || kind == "fmt.wrapError" {
		kind = "" // a text
	}
	return &Raised{Type: kind, Text: err.Error()}
}

// panicked returns the error of a handler that has panicked with v, with the place of the panic. It is called by a function deferred around it.
func panicked(v any) *Raised {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	e := &Raised{Type: "panic", Text: fmt.Sprint(v)}
	var stack strings.Builder
	for {
		f, more := frames.Next()
		fmt.Fprintf(&stack, "%s\n\t%s:%d\n", f.Function, f.File, f.Line)
		if e.Place == "" && !strings.HasPrefix(f.Function, "runtime.") {
			e.Place = fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			e.Stack = stack.String()
			return e
		}
	}
}

// CheckArgs returns an *ArgsError unless arguments fit the description of a request: a JSON object with each argument that is not optional, of the
// right type, and no other. It returns the arguments, {} for none.
func CheckArgs(r *hostabi.Request, args json.RawMessage) (json.RawMessage, error) {
	if len(args) > hostabi.MaxRequestBytes {
		return nil, &ArgsError{Reason: fmt.Sprintf("the arguments have %d bytes, at most %d", len(args), hostabi.MaxRequestBytes)}
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	given, err := objectOf(args)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(r.Args))
	for i, a := range r.Args {
		names[i] = a.Name
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(names, name) {
			return nil, &ArgsError{fmt.Sprintf("there is no argument %s", name), table.DidYouMean(name, "%s", "arguments", names)}
		}
	}
	for _, a := range r.Args {
		v, ok := given[a.Name]
		if !ok && !a.Optional {
			return nil, &ArgsError{Reason: fmt.Sprintf("the argument %s is missing", a.Name)}
		}
		if ok && !fits(a.Type, v) {
			return nil, &ArgsError{Reason: fmt.Sprintf("the argument %s is %.60s, want %s", a.Name, show(v), wants(a.Type))}
		}
	}
	return args, nil
}

// objectOf decodes an object; numbers stay as they are written.
func objectOf(args json.RawMessage) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, &ArgsError{Reason: fmt.Sprintf("the arguments are not JSON: %v", err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, &ArgsError{Reason: "the arguments are more than one JSON value"}
	}
	given, ok := v.(map[string]any)
	if !ok {
		return nil, &ArgsError{Reason: fmt.Sprintf("the arguments are %.60s, want a JSON object such as {\"lr\": 0.001}", show(v))}
	}
	return given, nil
}

func show(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

func fits(t hostabi.RequestType, v any) bool {
	var ok bool
	switch t {
	case hostabi.RequestBool:
		_, ok = v.(bool)
	case hostabi.RequestInteger:
		var n json.Number
		n, ok = v.(json.Number)
		ok = ok && !strings.ContainsAny(n.String(), ".eE") // 3.0 fills no int of Go or C, so it is refused before a handler decodes it
	case hostabi.RequestNumber:
		_, ok = v.(json.Number)
	case hostabi.RequestText:
		_, ok = v.(string)
	case hostabi.RequestList:
		_, ok = v.([]any)
	case hostabi.RequestTable:
		_, ok = v.(map[string]any)
	default:
		ok = true
	}
	return ok
}

func wants(t hostabi.RequestType) string {
	return map[hostabi.RequestType]string{
		hostabi.RequestBool: "true or false", hostabi.RequestInteger: "a whole number such as 3", hostabi.RequestNumber: "a number", hostabi.RequestText: "a text",
		hostabi.RequestList: "a list", hostabi.RequestTable: "a table",
	}[t]
}

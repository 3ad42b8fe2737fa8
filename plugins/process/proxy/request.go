package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// maxOpenRequests is how many requests may wait for one process.
const maxOpenRequests = 256

// request returns the handler that has the process answer a request.
func (x *proxy) request(name string) component.Handler {
	return func(ctx context.Context, args json.RawMessage, answer func(json.RawMessage, error)) {
		x.shared.mu.Lock()
		l, running := x.session, x.state == component.ProcessRunning
		x.shared.mu.Unlock()
		if l == nil || !running {
			answer(nil, fmt.Errorf("%w: its process is being started again", component.ErrLost))
			return
		}
		l.request(ctx, name, args, answer)
	}
}

// request sends the process a request; answer is called by the goroutine of the wire, or by the one that ends the session.
func (l *session) request(ctx context.Context, name string, args json.RawMessage, answer func(json.RawMessage, error)) {
	call, err := l.requests.add(answer)
	if err != nil {
		answer(nil, err)
		return
	}
	within := time.Hour
	if at, ok := ctx.Deadline(); ok {
		within = time.Until(at)
	}
	context.AfterFunc(ctx, func() { l.requests.forget(call) })
	l.sendFrame(native.Frame{Request: &native.Question{Call: call, Name: name, Args: args, WithinNS: within.Nanoseconds()}})
}

// requests are the requests to one process that it has not answered.
type requests struct {
	log *slog.Logger

	mu   sync.Mutex
	made uint64 // how many there were
	open map[uint64]func(json.RawMessage, error)
	over bool // the process has ended
}

func (r *requests) add(answer func(json.RawMessage, error)) (call uint64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return 0, component.ErrLost
	case len(r.open) == maxOpenRequests:
		return 0, fmt.Errorf("%w: %d wait for an answer", component.ErrBusy, len(r.open))
	}
	r.made++
	r.open[r.made] = answer
	return r.made, nil
}

// forget drops a request for whose answer nobody waits any more.
func (r *requests) forget(call uint64) { r.take(call) }

func (r *requests) take(call uint64) (answer func(json.RawMessage, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	answer = r.open[call]
	delete(r.open, call)
	return answer
}

func (r *requests) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open)
}

// answered takes an answer of the process.
func (r *requests) answered(a *native.Answer) {
	answer := r.take(a.Call)
	switch {
	case answer == nil:
		r.log.Warn("an answer to a request came too late, or a second time: it is dropped", "request", a.Call)
	case a.Error == nil:
		answer(a.Reply, nil)
	case a.Error.Answer:
		answer(nil, fmt.Errorf("%w %s", component.ErrAnswer, a.Error.Text))
	default:
		answer(nil, &component.Raised{Type: a.Error.Type, Text: cut(a.Error.Text), Place: a.Error.Place})
	}
}

// lose ends all requests: the process has ended.
func (r *requests) lose() {
	r.mu.Lock()
	open := r.open
	r.open, r.over = nil, true
	r.mu.Unlock()
	for _, answer := range open {
		answer(nil, component.ErrLost)
	}
}

// askOther asks another component for the process.
func (l *session) askOther(q *native.Question) {
	tell := func(reply json.RawMessage, err error) {
		a := native.Answer{Call: q.Call, Reply: reply}
		if err != nil {
			a.Reply, a.Error = nil, raisedBy(err)
		}
		l.sendFrame(native.Frame{Told: &a})
	}
	if !slices.ContainsFunc(l.x.manifest.Asks, func(r hostabi.Request) bool { return r.Name == q.Name }) {
		tell(nil, &component.ArgsError{Reason: fmt.Sprintf("the component asks no question %q: its description has those that it asks", q.Name)})
		return
	}
	l.x.h.Request(q.Name, q.Args, time.Duration(q.WithinNS), tell)
}

// raisedBy describes the error of a question to the process that has asked.
func raisedBy(err error) *native.Raised {
	r := &native.Raised{Text: cut(err.Error())}
	var raised *component.Raised
	switch {
	case errors.As(err, &raised):
		r.Type, r.Text, r.Place = raised.Type, cut(raised.Text), raised.Place
	case errors.As(err, new(*component.ArgsError)):
		r.Why = native.WhyArgs
	case errors.Is(err, component.ErrLate):
		r.Why = native.WhyLate
	case errors.Is(err, component.ErrLost):
		r.Why = native.WhyLost
	case errors.Is(err, component.ErrBusy):
		r.Why = native.WhyBusy
	case errors.Is(err, component.ErrAnswer):
		r.Answer = true
	}
	return r
}

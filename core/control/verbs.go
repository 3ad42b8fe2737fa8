package control

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// Notice sends one notice to the client while its request is under way; any goroutine. It waits while the client does
// not read, ten seconds at most; an error means that the client has disconnected, which also ends the request's
// context.
type Notice func(v any) error

// Verbs maps each verb to its handler. On fills it; Listen takes it.
type Verbs map[Verb]answerer

type answerer func(ctx context.Context, request json.RawMessage, notice Notice) (any, error)

// On makes fn answer a verb. Each request calls it on a new goroutine, several at the same time. ctx ends when the
// client disconnects or the server is closed. An *Error goes to the client as it is, any other error as CodeFailed; a
// panic is logged and answered, and the job continues. On panics if the verb has a handler already.
func On[Q, R any](v Verbs, verb Verb, fn func(ctx context.Context, request Q, notice Notice) (R, error)) {
	if _, twice := v[verb]; twice {
		panic(fmt.Sprintf("control: verb %q has two answers", verb))
	}
	v[verb] = func(ctx context.Context, data json.RawMessage, notice Notice) (any, error) {
		var request Q
		if err := decode(data, &request); err != nil {
			return nil, Errorf(CodeBad, "the request %q: %v", verb, err)
		}
		return fn(ctx, request, notice)
	}
}

// call answers one request and turns a panic into an error.
func (s *session) call(ctx context.Context, q ask, notice Notice) (reply any, err error) {
	fn := s.verbs[q.Verb]
	if fn == nil {
		return nil, Errorf(CodeUnknown, "this job knows no request %q", q.Verb)
	}
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("control: a request panicked", "verb", string(q.Verb), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			reply, err = nil, Errorf(CodeFailed, "the request %q ran into a defect of rlhost: %v (the job's log has more)", q.Verb, v)
		}
	}()
	return fn(ctx, q.Request, notice)
}

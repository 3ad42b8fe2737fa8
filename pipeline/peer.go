package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// maxQuestions is how many questions of one instance may wait for an answer.
const maxQuestions = 256

// peerRequest is a question that an instance asks another. The first of an answer, the end of the other instance and the deadline settles it.
type peerRequest struct {
	from    *instance
	to      *component.Host
	request string
	args    json.RawMessage
	ctx     context.Context // ends with the deadline, and when it is settled
	end     context.CancelFunc
	over    atomic.Bool
	answer  func(json.RawMessage, error)
}

// askOther is Host.AskOther. It finds the instance that runs now: a successor is asked as its predecessor was.
func (x *instance) askOther(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	q := &peerRequest{from: x, ctx: ctx, end: cancel, args: args, answer: answer}
	context.AfterFunc(ctx, func() { q.settle(nil, component.ErrLate) }) // also where the end is an answer: then it is settled
	if open := x.questions.Add(1); open > maxQuestions {
		q.settle(nil, fmt.Errorf("%w: %d wait for an answer", component.ErrBusy, open-1))
		return
	}
	if err := q.ask(ask); err != nil {
		q.settle(nil, err)
	}
}

// ask sends the question on its way.
func (q *peerRequest) ask(ask string) error {
	to, a := q.from.of.Asks[ask], q.from.view()
	asked := a.graph.Component(to.Component)
	if asked == nil {
		return fmt.Errorf("%w: there is no %s any more", component.ErrLost, to.Component)
	}
	m := a.member(asked.Name, to.InstanceFor(q.from.host.Index, asked.Count))
	if m == nil {
		return fmt.Errorf("%w: there is no such instance of %s any more", component.ErrLost, asked.Name)
	}
	r, ok := m.of.Manifest.Request(to.Request)
	if !ok {
		return &component.ArgsError{Reason: fmt.Sprintf("%s does not answer the request %q", m.name, to.Request)}
	}
	args, err := component.CheckArgs(r, q.args)
	if err != nil {
		return err
	}
	q.to, q.request, q.args = m.host, r.Name, args
	if !m.host.Receiver.ControlTo(q, &hostabi.Message{}) {
		q.Drop(nil)
	}
	return nil
}

// Deliver calls the handler, on the loop of the component that is asked.
func (q *peerRequest) Deliver(*hostabi.Message) {
	if q.over.Load() {
		return
	}
	q.to.Ask(q.ctx, q.request, q.args, func(reply json.RawMessage, err error) {
		var raised *component.Raised
		if errors.As(err, &raised) {
			q.to.Log.Warn("a request failed", append(attributesOf(q.request, raised), "asked_by", q.from.host.Name)...)
		}
		q.settle(reply, err)
	}, func() {
		q.to.Log.Warn("a handler has answered a request twice: its first answer counts", "request", q.request)
	})
}

// Drop is called instead of Deliver where the component ends first.
func (q *peerRequest) Drop(*hostabi.Message) { q.settle(nil, component.ErrLost) }

// settle gives the asker the answer, on its own loop. Any goroutine.
func (q *peerRequest) settle(reply json.RawMessage, err error) {
	if q.over.Swap(true) {
		return
	}
	q.end()
	q.from.host.Receiver.Control(func(*hostabi.Message) {
		q.from.questions.Add(-1)
		q.answer(reply, err)
	}, hostabi.Message{})
}

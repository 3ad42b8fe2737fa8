package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// Ask asks the components that patterns name, all at the same time, each on its own loop between two messages. ctx is the common deadline: a
// component that has not begun by then is not asked, one that has begun may still finish. Answers are in the order of the graph. The error is a
// *control.Error for patterns that name nothing, a request that none of the components answers, and arguments for a component that is not asked.
// Any goroutine but a loop's.
func (p *Pipeline) Ask(ctx context.Context, q *control.AskRequest) (*control.AskReply, error) {
	chosen, err := p.pauses.choose(q.Patterns)
	if err != nil {
		return nil, err
	}
	if q.Name == "" {
		return &control.AskReply{Offers: offersOf(chosen)}, nil
	}
	if len(q.Patterns) == 0 {
		chosen = slices.DeleteFunc(chosen, func(m member) bool { return !m.answers(q.Name) })
	}
	if !slices.ContainsFunc(chosen, func(m member) bool { return m.answers(q.Name) }) {
		return nil, unanswered(q.Name, q.Patterns, p.running.now().members, chosen)
	}
	for name := range q.Each {
		if !slices.ContainsFunc(chosen, func(m member) bool { return m.name == name }) {
			return nil, control.Errorf(control.CodeBad, "there are arguments for %q, which is not asked", name)
		}
	}
	asked := &asking{pauses: &p.pauses, name: q.Name, questions: make([]inquiry, len(chosen))}
	for i, m := range chosen {
		args, own := q.Each[m.name]
		if !own {
			args = q.Args
		}
		asked.questions[i].member = m
		asked.questions[i].prepare(q.Name, args)
	}
	return &control.AskReply{Answers: asked.all(ctx)}, nil
}

func (m *member) answers(request string) bool {
	_, ok := m.of.Manifest.Request(request)
	return ok
}

func offersOf(list []member) (offers []control.Offer) {
	for i := range list {
		offers = append(offers, control.Offer{Name: list[i].name, Requests: list[i].of.Manifest.Requests})
	}
	return offers
}

// unanswered is the error for a request that no chosen component answers.
func unanswered(name string, patterns []string, all, chosen []member) *control.Error {
	e := control.Errorf(control.CodeRequest, "nobody answers the request %q", name)
	if len(patterns) > 0 {
		e = control.Errorf(control.CodeRequest, "%s does not answer the request %q", strings.Join(patterns, ", "), name)
	}
	if !slices.ContainsFunc(chosen, func(m member) bool { return len(m.of.Manifest.Requests) > 0 }) {
		chosen = all
	}
	e.Help = offered(name, chosen)
	return e
}

// offered says what was meant by the name of a request, and what there is.
func offered(name string, of []member) string {
	var names, list []string
	for i := range of {
		m := &of[i]
		for j := range m.of.Manifest.Requests {
			r := &m.of.Manifest.Requests[j]
			names = append(names, r.Name)
			if line := m.of.Name + " answers " + r.String(); !slices.Contains(list, line) {
				list = append(list, line)
			}
		}
	}
	if len(list) == 0 {
		return "no component answers requests"
	}
	const most = 8
	if len(list) > most {
		list = append(list[:most], "…")
	}
	help := strings.Join(list, ", ")
	if near, ok := table.Nearest(name, names); ok {
		help = fmt.Sprintf("did you mean %q? ", near) + help
	}
	return help
}

// asking is a request to several components.
type asking struct {
	pauses    *pauses
	name      string
	questions []inquiry
}

// inquiry is a request to one of them.
type inquiry struct {
	member  member
	args    json.RawMessage
	refused *control.Error                  // it is not asked
	reply   atomic.Pointer[json.RawMessage] // written before the answer is told
}

// prepare checks the arguments.
func (q *inquiry) prepare(name string, args json.RawMessage) {
	r, ok := q.member.of.Manifest.Request(name)
	if !ok {
		q.refused = control.Errorf(control.CodeRequest, "it does not answer the request %q", name)
		return
	}
	checked, err := component.CheckArgs(r, args)
	if err != nil {
		q.refused = requestError(r, err)
		return
	}
	q.args = checked
}

// all asks and waits, and returns the answers.
func (x *asking) all(ctx context.Context) []control.AskAnswer {
	var members []control.Member
	var places []int
	for i := range x.questions {
		q := &x.questions[i]
		if q.refused == nil {
			members = append(members, control.Member{Name: q.member.name, Kind: q.member.of.Kind, Receiver: q.member.host.Receiver, Gone: q.member.loop.Gone(),
				Anywhere: q.member.host.HandlesAnywhere()})
			places = append(places, i)
		}
	}
	came := control.Group(ctx, members, func(i int, answer func(control.State, error)) {
		x.questions[places[i]].ask(ctx, x.name, answer)
	})
	answers := make([]control.AskAnswer, len(x.questions))
	for i := range x.questions {
		q := &x.questions[i]
		answers[i].Answer = control.Answer{Name: q.member.name, State: x.pauses.stateOf(&q.member), Error: q.refused}
	}
	for n, i := range places {
		x.questions[i].settle(&answers[i], &came[n], x.name)
	}
	return answers
}

func (s *pauses) stateOf(m *member) control.State {
	if s.has(m.instance) {
		return control.Paused
	}
	return control.Running
}

// ask calls the handler, on the component's loop unless it handles requests anywhere.
func (q *inquiry) ask(ctx context.Context, name string, answer func(control.State, error)) {
	log := q.member.host.Log
	q.member.host.Ask(ctx, name, q.args, func(reply json.RawMessage, err error) {
		if err == nil {
			q.reply.Store(&reply)
			answer(control.Running, nil)
			return
		}
		var raised *component.Raised
		if errors.As(err, &raised) {
			log.Warn("a request failed", attributesOf(name, raised)...)
		}
		r, _ := q.member.of.Manifest.Request(name)
		answer(control.Running, requestError(r, err))
	}, func() {
		log.Warn("a handler has answered a request twice: its first answer counts", "request", name)
	})
}

func attributesOf(name string, e *component.Raised) []any {
	list := []any{"err", e, "request", name}
	if e.Place != "" {
		list = append(list, "place", e.Place)
	}
	if e.Stack != "" {
		list = append(list, "stack", e.Stack)
	}
	return list
}

// settle fills the answer from what came.
func (q *inquiry) settle(a *control.AskAnswer, came *control.Answer, name string) {
	a.TimedOut, a.Error = came.TimedOut, came.Error
	var code control.Code
	if came.Error != nil {
		code = came.Error.Code
	}
	switch {
	case came.TimedOut:
		a.Error = control.Errorf(control.CodeUnanswered, "it did not answer %s in time", name)
		a.Error.Help = "its handler may still run, or wait for the end of a slot: allow more time, or see rlhost status"
	case code == control.CodeEnded:
		a.State, a.Error = control.Lost, lost(component.ErrLost)
	case code == control.CodeLost:
		a.State = control.Lost
	case came.Error == nil:
		if reply := q.reply.Load(); reply != nil {
			a.Reply = *reply
		}
	}
}

func lost(err error) *control.Error {
	e := control.Errorf(control.CodeLost, "%v", err)
	e.Help = "it is not known whether it did what was asked; ask again"
	return e
}

// requestError gives an error of a request its code.
func requestError(r *hostabi.Request, err error) *control.Error {
	var raised *component.Raised
	var args *component.ArgsError
	switch {
	case errors.As(err, &raised):
		e := control.Errorf(control.CodeRaised, "%s", raised.Text)
		e.Type, e.Place = raised.Type, raised.Place
		return e
	case errors.As(err, &args):
		e := control.Errorf(control.CodeArgs, "%v", args)
		e.Help = strings.TrimPrefix(args.Help+"; ask "+r.String(), "; ")
		return e
	case errors.Is(err, component.ErrLost):
		return lost(err)
	case errors.Is(err, component.ErrLate):
		return control.Errorf(control.CodeUnanswered, "%v", err)
	case errors.Is(err, component.ErrBusy):
		return control.Errorf(control.CodeBusy, "%v", err)
	case errors.Is(err, component.ErrAnswer):
		return control.Errorf(control.CodeReply, "%v", err)
	}
	return control.Errorf(control.CodeRaised, "%v", err)
}

package control

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrLoopEnded is the answer of a component whose loop has ended.
var ErrLoopEnded = errors.New("its loop has ended")

// lookAgain is how often a group request looks for loops that ended without taking it.
const lookAgain = 20 * time.Millisecond

// Member is a component instance that can be asked.
type Member struct {
	Name, Kind string
	Receiver   *loop.Receiver
}

// Response is the answer of one member.
type Response[T any] struct {
	Name     string
	Value    T
	Err      error
	TimedOut bool // it had not answered by the deadline; if it has begun, it may still finish
}

// Select returns the members that match any of the patterns, in their order, each once; all of them for no patterns. A
// pattern that is malformed is an *Error with CodeBad, one that names none of them is CodeUnknown.
func Select(members []Member, patterns []string) ([]Member, error) {
	if len(patterns) == 0 {
		return slices.Clone(members), nil
	}
	chosen := make([]bool, len(members))
	for _, text := range patterns {
		p, err := ParsePattern(text)
		if err != nil {
			return nil, Errorf(CodeBad, "%v", err)
		}
		found := false
		for i, m := range members {
			if p.Match(m.Name, m.Kind) {
				chosen[i], found = true, true
			}
		}
		if !found {
			return nil, unknown(text, members)
		}
	}
	var list []Member
	for i, m := range members {
		if chosen[i] {
			list = append(list, m)
		}
	}
	return list, nil
}

func unknown(pattern string, members []Member) *Error {
	e := Errorf(CodeUnknown, "no component is called %q", pattern)
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	e.Help = "there are " + strings.Join(names, ", ")
	return e
}

// Group asks all members at the same time, each on its own loop by a control message, and waits until all have answered
// or ctx ends: ctx is the common deadline. ask calls answer, or passes it on to be called from any goroutine; only the
// first call counts. Group returns an answer for each member, in their order. A member whose loop has ended answers
// ErrLoopEnded at once. A member that has not begun when ctx ends is not asked. A panic in ask is its member's answer,
// and leaves its loop running. Group must not be called on a member's loop.
func Group[T any](ctx context.Context, members []Member, ask func(name string, answer func(T, error))) []Response[T] {
	g := &group[T]{ask: ask, came: make(chan struct{}, len(members)), questions: make([]question[T], len(members))}
	for i, m := range members {
		q := &g.questions[i]
		q.group, q.member = g, m
		if !m.Receiver.ControlTo(q, &hostabi.Message{}) {
			q.Drop(nil)
		}
	}
	g.wait(ctx)
	return g.end()
}

// group is one request to several members.
type group[T any] struct {
	ask       func(name string, answer func(T, error))
	came      chan struct{} // a token for each answer; room for all
	questions []question[T]

	mu   sync.Mutex
	over bool // no caller waits for answers
}

// question is the control message to one member.
type question[T any] struct {
	group    *group[T]
	member   Member
	response Response[T] // under the group's mutex
	answered bool        // under the group's mutex
}

// Deliver asks, on the member's loop.
func (q *question[T]) Deliver(*hostabi.Message) {
	if q.group.isOver() {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			var none T
			q.answer(none, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	q.group.ask(q.member.Name, q.answer)
}

// Drop is called instead of Deliver by a loop that was closed.
func (q *question[T]) Drop(*hostabi.Message) {
	var none T
	q.answer(none, ErrLoopEnded)
}

func (q *question[T]) answer(value T, err error) {
	g := q.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.answered || g.over {
		return
	}
	q.answered = true
	q.response.Value, q.response.Err = value, err
	g.came <- struct{}{}
}

func (g *group[T]) isOver() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

// end returns the answers. Later ones are dropped.
func (g *group[T]) end() []Response[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	list := make([]Response[T], len(g.questions))
	for i := range g.questions {
		q := &g.questions[i]
		list[i] = q.response
		list[i].Name, list[i].TimedOut = q.member.Name, !q.answered
	}
	return list
}

// wait returns once all have answered, or ctx has ended.
func (g *group[T]) wait(ctx context.Context) {
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	g.dropEnded()
	for left := len(g.questions); left > 0; {
		select {
		case <-g.came:
			left--
		case <-look.C:
			g.dropEnded()
		case <-ctx.Done():
			return
		}
	}
}

// dropEnded answers for the members whose loops have ended: what is posted after a loop last checked its
// control lane is neither delivered nor, until the loop is closed, dropped.
func (g *group[T]) dropEnded() {
	for i := range g.questions {
		if q := &g.questions[i]; q.member.Receiver.Loop().Ended() {
			q.Drop(nil)
		}
	}
}

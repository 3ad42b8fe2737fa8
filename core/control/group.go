package control

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// errLoopEnded is the answer of a component whose loop has ended.
var errLoopEnded = errors.New("its loop has ended")

// Member is a component instance that can be asked.
type Member struct {
	Name, Kind string
	Receiver   *loop.Receiver
	Gone       <-chan struct{} // closed when its loop runs no more slots
	Anywhere   bool            // it is asked on the goroutine of Group, not on its loop
}

// Select returns the members that match any of the patterns, in their order, each once; all of them for no patterns. A
// malformed pattern is an *Error with CodeBad; a pattern without a match is CodeUnknown.
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

// Group asks all members at the same time, each on its own loop by a control message unless it says Anywhere, and waits until all have answered or ctx
// ends: ctx is the common deadline. ask calls answer, or passes it on to be called from any goroutine; only the first call
// counts. Group returns an answer for each member, in their order; an error is an *Error or CodeFailed. A member whose loop has
// ended answers CodeEnded at once. A member that has not begun when ctx ends is not asked; a member that has begun may still
// finish. A panic in ask is its member's answer, and leaves its loop running. Group must not be called on a member's loop.
func Group(ctx context.Context, members []Member, ask func(i int, answer func(State, error))) []Answer {
	g := &group{ask: ask, came: make(chan struct{}, len(members)), questions: make([]question, len(members))}
	for i, m := range members {
		q := &g.questions[i]
		q.group, q.member, q.number = g, m, i
		if m.Anywhere {
			q.Deliver(nil)
			continue
		}
		if !m.Receiver.ControlTo(q, &hostabi.Message{}) {
			q.Drop(nil)
		}
	}
	g.wait(ctx)
	return g.end()
}

// group is one request to several members.
type group struct {
	ask       func(i int, answer func(State, error))
	came      chan struct{} // a token for each answer; room for all
	questions []question

	mu   sync.Mutex
	over bool // no caller waits for answers
}

// question is the control message to one member.
type question struct {
	group    *group
	member   Member
	number   int
	state    State // under the group's mutex
	err      error // under the group's mutex
	answered bool  // under the group's mutex
}

// Deliver asks, on the member's loop.
func (q *question) Deliver(*hostabi.Message) {
	if q.group.isOver() {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			q.answer("", fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	q.group.ask(q.number, q.answer)
}

// Drop is called instead of Deliver by a loop that was closed.
func (q *question) Drop(*hostabi.Message) {
	q.answer("", errLoopEnded)
}

func (q *question) answer(state State, err error) {
	g := q.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.answered || g.over {
		return
	}
	q.answered = true
	q.state, q.err = state, err
	g.came <- struct{}{}
}

func (g *group) isOver() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.over
}

// end returns the answers. Later ones are dropped.
func (g *group) end() []Answer {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	list := make([]Answer, len(g.questions))
	for i := range g.questions {
		list[i] = g.questions[i].result()
	}
	return list
}

func (q *question) result() Answer {
	name := q.member.Name
	a := Answer{Name: name, State: q.state, TimedOut: !q.answered}
	var e *Error
	switch {
	case a.TimedOut:
		a.State, a.Error = Running, Errorf(CodeLate, "%s did not become idle in time, and continues", name)
	case errors.As(q.err, &e):
		a.Error = e
	case errors.Is(q.err, errLoopEnded):
		a.Error = Errorf(CodeEnded, "%s: %v", name, q.err)
	case q.err != nil:
		a.Error = Errorf(CodeFailed, "%s: %v", name, q.err)
	}
	return a
}

// wait returns once all have answered, or ctx has ended. It answers for members whose loops end meanwhile: a message posted
// after a loop last checked its control lane is neither delivered nor, until the loop is closed, dropped.
func (g *group) wait(ctx context.Context) {
	var watching sync.WaitGroup
	defer watching.Wait()
	over := make(chan struct{})
	defer close(over)
	for i := range g.questions {
		q := &g.questions[i]
		watching.Go(func() {
			select {
			case <-q.member.Gone:
				q.Drop(nil)
			case <-over:
			}
		})
	}
	for left := len(g.questions); left > 0; {
		select {
		case <-g.came:
			left--
		case <-ctx.Done():
			return
		}
	}
}

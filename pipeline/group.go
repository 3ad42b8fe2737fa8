package pipeline

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
)

// Pause makes the instances that patterns name come to rest, all for none, and returns what each of them says, in the
// order of the graph. A rollout ends the trajectories that it has begun. Those that others need for that come to rest
// after them: first who asks, then who is asked, and so on downstream. ctx is the one deadline of all; who has not come
// to rest by then runs on, and its answer is TimedOut.
//
// A change, a checkpoint or the end of the run lifts the pause for as long as that takes: see lift. What is paused, and
// whether it is, is a matter of the place in the graph: an instance that replaces a paused one is paused.
//
// The error is a *control.Error for patterns that are malformed or name nothing. Any goroutine but those of the loops.
func (p *Pipeline) Pause(ctx context.Context, patterns []string) ([]control.Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life.ctx, cancel)() // nobody comes to rest any more
	p.pauses.serial.Lock()                        // from here on no change begins, so that those chosen stay
	defer p.pauses.serial.Unlock()
	chosen, err := p.choose(patterns)
	if err != nil {
		return nil, err
	}
	return p.pause(ctx, chosen), nil
}

// Resume makes instances that are paused run on. Errors and answers are as of Pause.
func (p *Pipeline) Resume(ctx context.Context, patterns []string) ([]control.Answer, error) {
	p.pauses.serial.Lock()
	defer p.pauses.serial.Unlock()
	chosen, err := p.choose(patterns)
	if err != nil {
		return nil, err
	}
	p.pauses.wish(chosen, false)
	return p.resumeAll(ctx, chosen), nil
}

// pauses is what is paused in a run. Pauser's methods are called on the loops of the instances.
type pauses struct {
	serial sync.Mutex // one request at a time; no loop takes it

	mu      sync.Mutex
	resting map[*instance]*rest
	wished  map[seatName]bool // places that are to be paused
	lifted  int               // how many lift the pause at the moment
}

// rest is an instance that comes to rest, or is at it.
type rest struct {
	reached bool
}

// has reports whether an instance is at rest.
func (s *pauses) has(x *instance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resting[x]
	return r != nil && r.reached
}

func (s *pauses) wish(list []member, paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wished == nil {
		s.wished, s.resting = map[seatName]bool{}, map[*instance]*rest{}
	}
	for _, m := range list {
		if paused {
			s.wished[seatName{m.of.Name, m.index}] = true
		} else {
			delete(s.wished, seatName{m.of.Name, m.index})
		}
	}
}

// choose returns the members that patterns name.
func (p *Pipeline) choose(patterns []string) ([]member, error) {
	a := p.now()
	all := make([]control.Member, len(a.members))
	for i := range a.members {
		all[i] = a.members[i].asked()
	}
	chosen, err := control.Select(all, patterns)
	if err != nil {
		return nil, err
	}
	var list []member
	for _, m := range a.members {
		if slices.ContainsFunc(chosen, func(c control.Member) bool { return c.Name == m.name }) {
			list = append(list, m)
		}
	}
	return list, nil
}

// asked is the member as group requests take it: on its loop, also while its receiver is held.
func (m *member) asked() control.Member {
	return control.Member{Name: m.name, Kind: m.of.Kind, Receiver: m.loop.own}
}

// pause pauses instances, stage by stage, and notes those that are to stay so.
func (p *Pipeline) pause(ctx context.Context, list []member) []control.Answer {
	if p.life.over() != nil {
		return answerAll(list, control.Errorf(control.CodeEnded, "the run is about to end, or has ended"))
	}
	if p.pauses.isLifted() {
		return answerAll(list, control.Errorf(control.CodeBusy, "a change is being made, or a checkpoint"))
	}
	p.pauses.wish(list, true)
	answers := map[string]control.Answer{}
	for _, stage := range p.stages(list) {
		for _, r := range askLater(ctx, stage, p.pauseOne) {
			answers[r.Name] = answerOf(r)
		}
	}
	var late []member // or with an error
	ordered := make([]control.Answer, len(list))
	for i, m := range list {
		ordered[i] = answers[m.name]
		if a := ordered[i]; a.TimedOut || a.Error != nil {
			late = append(late, m)
		}
	}
	p.pauses.wish(late, false)
	for _, m := range late {
		p.postResume(m.instance)
	}
	return ordered
}

// resumeAll makes instances run on, all at once: who is asked has to run for who asks.
func (p *Pipeline) resumeAll(ctx context.Context, list []member) []control.Answer {
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	answers := make([]control.Answer, len(list))
	for i, r := range askLater(ctx, list, p.resumeOne) {
		answers[i] = answerOf(r)
	}
	return answers
}

// resumeTime is how long an instance may take to run on: as long as one slot of its loop.
const resumeTime = 10 * time.Second

func askLater(ctx context.Context, list []member, ask func(x *instance, answer func(control.State, error))) []control.Response[control.State] {
	members := make([]control.Member, len(list))
	byName := map[string]*instance{}
	for i := range list {
		members[i] = list[i].asked()
		byName[list[i].name] = list[i].instance
	}
	return control.GroupLater(ctx, members, func(name string, answer func(control.State, error)) { ask(byName[name], answer) })
}

func answerOf(r control.Response[control.State]) control.Answer {
	a := control.Answer{Name: r.Name, State: r.Value, TimedOut: r.TimedOut}
	var e *control.Error
	switch {
	case r.TimedOut:
		a.State, a.Error = control.Running, control.Errorf(control.CodeLate, "%s did not come to rest in time, and runs on", r.Name)
	case errors.As(r.Err, &e):
		a.Error = e
	case errors.Is(r.Err, control.ErrLoopEnded):
		a.Error = control.Errorf(control.CodeEnded, "%s: %v", r.Name, r.Err)
	case r.Err != nil:
		a.Error = control.Errorf(control.CodeFailed, "%s: %v", r.Name, r.Err)
	}
	return a
}

func answerAll(list []member, e *control.Error) []control.Answer {
	answers := make([]control.Answer, len(list))
	for i, m := range list {
		answers[i] = control.Answer{Name: m.name, Error: e}
	}
	return answers
}

// pauseOne makes an instance come to rest. It runs on its loop.
func (p *Pipeline) pauseOne(x *instance, answer func(control.State, error)) {
	s := &p.pauses
	s.mu.Lock()
	if r := s.resting[x]; r != nil {
		s.mu.Unlock()
		answer(control.Paused, nil) // requests come one after the other: it has come to rest
		return
	}
	r := &rest{}
	s.resting[x] = r
	s.mu.Unlock()
	rested := func() {
		s.mu.Lock()
		mine := s.resting[x] == r
		r.reached = mine
		s.mu.Unlock()
		if !mine {
			return
		}
		x.host.Receiver.Pause() // nothing is called from now on
		answer(control.Paused, nil)
	}
	if c, ok := x.component.(component.Pauser); ok {
		c.Pause(rested)
		return
	}
	rested()
}

// resumeOne makes an instance run on. It runs on its loop.
func (p *Pipeline) resumeOne(x *instance, answer func(control.State, error)) {
	s := &p.pauses
	s.mu.Lock()
	r := s.resting[x]
	delete(s.resting, x)
	s.mu.Unlock()
	if r == nil {
		answer(control.Running, nil)
		return
	}
	if c, ok := x.component.(component.Pauser); ok {
		c.Resume()
	}
	if r.reached {
		x.host.Receiver.Resume()
	}
	answer(control.Running, nil)
}

func (s *pauses) isLifted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lifted > 0
}

// lift makes all run on that is paused, and returns what pauses it again: for changes, which have to come to their
// boundaries, and for checkpoints. Pauses that are asked for meanwhile are refused. Not on a loop.
func (p *Pipeline) lift() (restore func()) {
	s := &p.pauses
	s.serial.Lock()
	defer s.serial.Unlock()
	s.mu.Lock()
	s.lifted++
	s.mu.Unlock()
	p.resumeAll(p.life.ctx, p.wishedMembers())
	return func() {
		s.serial.Lock()
		defer s.serial.Unlock()
		s.mu.Lock()
		s.lifted--
		again := s.lifted == 0
		s.mu.Unlock()
		if again && p.life.over() == nil {
			ctx, cancel := context.WithTimeout(p.life.ctx, resumeTime)
			defer cancel()
			p.pauseAgain(ctx)
		}
	}
}

// pauseAgain pauses what was paused before the pause was lifted.
func (p *Pipeline) pauseAgain(ctx context.Context) {
	for _, a := range p.pause(ctx, p.wishedMembers()) {
		if a.Error != nil {
			p.log.Warn("was paused, and runs on", "component", a.Name, "err", a.Error)
		}
	}
}

// letGo makes all run on that is paused, for good, without waiting for it: the run is to end.
func (p *Pipeline) letGo() {
	s := &p.pauses
	s.mu.Lock()
	s.lifted++ // nothing is paused any more
	var list []*instance
	for x := range s.resting {
		list = append(list, x)
	}
	s.mu.Unlock()
	for _, x := range list {
		p.postResume(x)
	}
}

// postResume makes an instance run on as soon as its loop comes to it.
func (p *Pipeline) postResume(x *instance) {
	x.loop.own.Control(func(*hostabi.Message) { p.resumeOne(x, func(control.State, error) {}) }, hostabi.Message{})
}

// wishedMembers returns the members that are to be paused.
func (p *Pipeline) wishedMembers() (list []member) {
	p.pauses.mu.Lock()
	defer p.pauses.mu.Unlock()
	for _, m := range p.now().members {
		if p.pauses.wished[seatName{m.of.Name, m.index}] {
			list = append(list, m)
		}
	}
	return list
}

// stages orders instances by who needs whom to come to rest: who is answered by another goes before it, and so does who
// sends to it.
func (p *Pipeline) stages(list []member) (stages [][]member) {
	g := p.now().graph
	depth := g.Depths()
	for d := range len(g.Components) + 1 {
		var stage []member
		for _, m := range list {
			if depth[m.of.Name] == d {
				stage = append(stage, m)
			}
		}
		if len(stage) > 0 {
			stages = append(stages, stage)
		}
	}
	return stages
}

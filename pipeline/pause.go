package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// pauses keeps the paused instances of a run. Pauser's methods are called on the loops of the instances.
type pauses struct {
	*running
	changes *changeLock
	settled func() bool // nothing is under way that a synchronous run has yet to learn from

	serial sync.Mutex // one request at a time; no loop takes it

	guard   sync.Mutex
	pausing map[*instance]*pausing
	wished  map[instanceKey]bool // places to pause
	lifted  int                  // how many callers lift the pause now
	still   bool                 // the run is kept paused; see atRest
}

// pausing is an instance that is pausing or paused.
type pausing struct {
	reached bool
}

// has reports whether an instance is paused.
func (s *pauses) has(x *instance) bool {
	s.guard.Lock()
	defer s.guard.Unlock()
	r := s.pausing[x]
	return r != nil && r.reached
}

func (s *pauses) wish(list []member, paused bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	if s.wished == nil {
		s.wished, s.pausing = map[instanceKey]bool{}, map[*instance]*pausing{}
	}
	for _, m := range list {
		switch {
		case m.still(): // it would keep back what others have for its host
		case paused:
			s.wished[instanceKey{m.of.Name, m.index}] = true
		default:
			delete(s.wished, instanceKey{m.of.Name, m.index})
		}
	}
}

// choose returns the members that patterns name.
func (s *pauses) choose(patterns []string) ([]member, error) {
	a := s.now()
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

// pause pauses instances, stage by stage, and notes which must stay paused.
func (s *pauses) pause(ctx context.Context, list []member) []control.Answer {
	if s.changes.over() != nil {
		return answerAll(list, control.Errorf(control.CodeEnded, "the run is about to end, or has ended"))
	}
	if s.isLifted() {
		return answerAll(list, control.Errorf(control.CodeBusy, "a change is being made, or a checkpoint"))
	}
	s.wish(list, true)
	needed := s.needed(list)
	s.resumeAll(ctx, needed)
	answers := map[string]control.Answer{}
	all := slices.Clone(list)
	for _, m := range needed {
		if !slices.ContainsFunc(list, m.is) {
			all = append(all, m)
		}
	}
	whole := len(s.wishedMembers()) == len(s.now().members)
	for i, stage := range s.stages(all) {
		if i > 0 && whole {
			s.letSettle(ctx)
		}
		for _, a := range askAll(ctx, stage, s.pauseOne) {
			answers[a.Name] = a
		}
	}
	s.pauseAnyhow(needed, answers)
	var late []member // or with an error
	ordered := make([]control.Answer, len(list))
	for i, m := range list {
		ordered[i] = answers[m.name]
		if a := ordered[i]; a.TimedOut || a.Error != nil {
			late = append(late, m)
		}
	}
	s.wish(late, false)
	for _, m := range late {
		s.postResume(m.instance)
	}
	return ordered
}

// settleTime bounds how long a pause of everything waits for a gathered dataset: its learner may never come to it.
const settleTime = time.Second

// letSettle waits until everything that the paused instances have sent has been learned from: a synchronous run that is paused
// between two datasets can be saved, and changed, as it is.
func (s *pauses) letSettle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	lookUntil(ctx, nil, s.settled)
}

// needed returns the paused instances that others may need in order to pause: an instance that waits for their answers, or for
// room on the way to them, pauses only while they run.
func (s *pauses) needed(list []member) (needed []member) {
	a := s.now()
	depth := depths(a.graph)
	first := len(a.graph.Components) + 1
	for _, m := range list {
		if !s.has(m.instance) {
			first = min(first, depth[m.of.Name])
		}
	}
	for _, m := range a.members {
		if s.has(m.instance) && depth[m.of.Name] > first {
			needed = append(needed, m)
		}
	}
	return needed
}

// is reports whether two members are the same instance.
func (m member) is(o member) bool { return m.instance == o.instance }

// pauseAnyhow pauses instances that were resumed for others and did not pause again in the time of the request.
func (s *pauses) pauseAnyhow(list []member, answers map[string]control.Answer) {
	late := slices.DeleteFunc(slices.Clone(list), func(m member) bool { return answers[m.name].State == control.Paused })
	if len(late) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.changes.ctx, resumeTime)
	defer cancel()
	for _, a := range askAll(ctx, late, s.pauseOne) {
		if a.TimedOut || a.Error != nil {
			s.log.Warn("was paused, and runs on", "component", a.Name, "err", a.Error)
		}
	}
}

// resumeAll makes instances run on, all at once: a requester needs the instance that answers it.
func (s *pauses) resumeAll(ctx context.Context, list []member) []control.Answer {
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	return askAll(ctx, list, s.resumeOne)
}

// resumeTime is how long an instance may take to run on: as long as one slot of its loop.
const resumeTime = 10 * time.Second

// askAll asks instances on their loops; see control.Group.
func askAll(ctx context.Context, list []member, ask func(x *instance, answer func(control.State, error))) []control.Answer {
	members := make([]control.Member, len(list))
	for i := range list {
		members[i] = list[i].asked()
	}
	return control.Group(ctx, members, func(i int, answer func(control.State, error)) { ask(list[i].instance, answer) })
}

func answerAll(list []member, e *control.Error) []control.Answer {
	answers := make([]control.Answer, len(list))
	for i, m := range list {
		answers[i] = control.Answer{Name: m.name, Error: e}
	}
	return answers
}

// pauseOne pauses an instance. It runs on its loop.
func (s *pauses) pauseOne(x *instance, answer func(control.State, error)) {
	s.guard.Lock()
	if r := s.pausing[x]; r != nil {
		s.guard.Unlock()
		answer(control.Paused, nil) // requests come one after the other: it has paused
		return
	}
	r := &pausing{}
	s.pausing[x] = r
	s.guard.Unlock()
	rested := func() {
		s.guard.Lock()
		mine := s.pausing[x] == r
		r.reached = mine
		s.guard.Unlock()
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
func (s *pauses) resumeOne(x *instance, answer func(control.State, error)) {
	s.guard.Lock()
	r := s.pausing[x]
	delete(s.pausing, x)
	s.guard.Unlock()
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
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.lifted > 0
}

// lift makes all paused instances run on, and returns the function that pauses them again: for changes, which must
// reach their boundaries, and for checkpoints, where not everything is paused. Pauses requested meanwhile are refused. It must not be called on a
// loop.
func (s *pauses) lift() (restore func()) {
	s.serial.Lock()
	defer s.serial.Unlock()
	s.guard.Lock()
	s.lifted++
	s.guard.Unlock()
	s.resumeAll(s.changes.ctx, s.wishedMembers())
	return func() {
		s.serial.Lock()
		defer s.serial.Unlock()
		s.guard.Lock()
		s.lifted--
		again := s.lifted == 0
		s.guard.Unlock()
		if again && s.changes.over() == nil {
			ctx, cancel := context.WithTimeout(s.changes.ctx, resumeTime)
			defer cancel()
			s.pauseAgain(ctx)
		}
	}
}

// pauseAgain pauses the instances that were paused before the pause was lifted.
func (s *pauses) pauseAgain(ctx context.Context) {
	for _, a := range s.pause(ctx, s.wishedMembers()) {
		if a.Error != nil {
			s.log.Warn("was paused, and runs on", "component", a.Name, "err", a.Error)
		}
	}
}

// atRest calls fn while the whole run stays paused, and reports whether it did: every instance must be paused, and no change or
// checkpoint may have lifted that. The end of the run waits for fn, which must not wait for anything that needs a running
// instance. It must not be called on a loop.
func (s *pauses) atRest(fn func()) bool {
	s.serial.Lock()
	defer s.serial.Unlock()
	if !s.keepStill() {
		return false
	}
	defer s.endStill()
	fn()
	return true
}

func (s *pauses) keepStill() bool {
	members := s.now().members
	s.guard.Lock()
	defer s.guard.Unlock()
	for i := range members {
		if r := s.pausing[members[i].instance]; (r == nil || !r.reached) && !members[i].still() {
			return false
		}
	}
	s.still = s.lifted == 0
	return s.still
}

// endStill makes paused instances run on if the run has begun to end meanwhile.
func (s *pauses) endStill() {
	s.guard.Lock()
	s.still = false
	ends := s.lifted > 0
	s.guard.Unlock()
	if ends {
		s.resumeResting()
	}
}

// joins pauses a new instance before it runs, in a run that is kept paused.
func (s *pauses) joins(x *instance) {
	x.loop.Do(func() { s.pauseOne(x, func(control.State, error) {}) })
}

// leaves forgets an instance that is taken away.
func (s *pauses) leaves(x *instance) {
	s.guard.Lock()
	defer s.guard.Unlock()
	delete(s.pausing, x)
}

// resumeForGood makes all paused instances run on, for good, without waiting for them: the run ends.
func (s *pauses) resumeForGood() {
	s.guard.Lock()
	s.lifted++ // nothing is paused any more
	still := s.still
	s.guard.Unlock()
	if !still {
		s.resumeResting()
	}
}

func (s *pauses) resumeResting() {
	s.guard.Lock()
	var list []*instance
	for x := range s.pausing {
		list = append(list, x)
	}
	s.guard.Unlock()
	for _, x := range list {
		s.postResume(x)
	}
}

// postResume makes an instance run on as soon as its loop comes to it.
func (s *pauses) postResume(x *instance) {
	x.loop.Own.Control(func(*hostabi.Message) { s.resumeOne(x, func(control.State, error) {}) }, hostabi.Message{})
}

// wishedMembers returns the members to pause.
func (s *pauses) wishedMembers() (list []member) {
	s.guard.Lock()
	defer s.guard.Unlock()
	for _, m := range s.now().members {
		if s.wished[instanceKey{m.of.Name, m.index}] {
			list = append(list, m)
		}
	}
	return list
}

// stages orders instances for pausing: an instance comes before the instance that answers it, and before its receivers.
func (s *pauses) stages(list []member) (stages [][]member) {
	g := s.now().graph
	depth := depths(g)
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

// depths returns the length of the longest path of wires to each component. Wires of modes reply and latest do not
// count, because no sender waits for them. Wires in a cycle count until they return.
func depths(g *graph.Graph) map[string]int {
	depth := map[string]int{}
	for range g.Components {
		for i := range g.Wires {
			w := &g.Wires[i]
			if w.Mode == bus.Reply || w.Mode == bus.Latest || w.From == w.To {
				continue
			}
			depth[w.To] = min(max(depth[w.To], depth[w.From]+1), len(g.Components))
		}
	}
	return depth
}

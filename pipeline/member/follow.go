package member

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"

	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// partChange is a change of the environments of a part, as the owner orders it. Its fields are guarded by the mu of part.
type partChange struct {
	part   *part
	number uint64
	stage  stage         // ordered
	next   chan struct{} // closed when there is another one
	faults chan error    // of the next environments, on probation; holds one
}

// order takes the orders of the owner. One that is new begins; one that is final and not known has ended before.
func (p *part) order(orders []order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes == nil {
		p.changes = map[uint64]*partChange{}
	}
	for _, o := range orders {
		x := p.changes[o.Number]
		switch {
		case o.Share != p.share.Number:
		case x == nil:
			x = &partChange{part: p, number: o.Number, stage: o.Stage, next: make(chan struct{}), faults: make(chan error, 1)}
			p.changes[o.Number] = x
			p.tasks.Go(x.run)
		case x.stage != o.Stage:
			x.stage = o.Stage
			close(x.next)
			x.next = make(chan struct{})
		}
	}
}

// await returns the stage that is ordered once it is another than one; it is final where the part ends.
func (x *partChange) await(than stage) stage {
	for {
		x.part.mu.Lock()
		is, next := x.stage, x.next
		x.part.mu.Unlock()
		if is != than {
			return is
		}
		select {
		case <-next:
		case <-x.part.ctx.Done():
			return stageCancel
		}
	}
}

// run makes the change as far as it is ordered, and says so.
func (x *partChange) run() { x.answer(changeAnswer{Stage: x.make()}) }

// make returns the last stage that was ordered.
func (x *partChange) make() stage {
	p := x.part
	p.changing.Lock() // the owner prepares one change at a time, which may find the end of the one before under way
	t, err := x.prepare()
	nothing := errors.Is(err, pipeline.ErrNothing)
	if nothing {
		err = nil
	}
	x.answer(changeAnswer{Stage: stagePrepare, Failed: reasonOf(err)})
	ordered := x.await(stagePrepare)
	if nothing || err != nil || ordered.final() {
		if t != nil {
			x.note(t.Close())
		}
		p.changing.Unlock()
		if ordered == stageCommit {
			x.answer(changeAnswer{Stage: stageCommit, Failed: reasonOf(err)})
			ordered = x.await(stageCommit)
		}
		return ordered
	}
	return x.commit(t)
}

// commit makes the change, and goes back where it fails or is cancelled. changing is held, and is not afterwards.
func (x *partChange) commit(t *pipeline.Transition) stage {
	p := x.part
	before := p.built.Graph()
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	ended := make(chan stage, 1)
	p.tasks.Go(func() {
		last := x.await(stageCommit)
		if last == stageCancel {
			stop()
		}
		ended <- last
	})
	o, err := t.Commit(ctx)
	p.changing.Unlock()
	x.answer(changeAnswer{Stage: stageCommit, Failed: reasonOf(err), Went: component.EnvsWent{
		Envs: o.Envs, Kept: o.Kept, Truncated: o.Truncated, Dropped: o.Dropped, PauseNS: o.PauseNS,
	}})
	if err != nil {
		return <-ended
	}
	var last stage
	select {
	case last = <-ended:
	case fault := <-x.faults:
		x.answer(changeAnswer{Stage: stageFault, Failed: fault.Error()})
		last = <-ended
	}
	if last == stageSettle {
		if !t.Settle() {
			x.answer(changeAnswer{Stage: stageFault, Failed: (<-x.faults).Error()})
		}
		return last
	}
	t.TakeBack()
	x.note(x.goBack(before))
	return last
}

// goBack returns to a graph whose environments run again already.
func (x *partChange) goBack(before *graph.Graph) error {
	x.part.changing.Lock()
	defer x.part.changing.Unlock()
	return pipeline.GoBack(x.part.ctx, x.part.built, before)
}

func (x *partChange) note(err error) {
	if err != nil && x.part.ctx.Err() == nil {
		x.part.log.Warn("a change of environments here has not been taken back", "why", err)
	}
}

// prepare gets what the change is, and prepares it.
func (x *partChange) prepare() (*pipeline.Transition, error) {
	p := x.part
	text, err := p.askUntil(verbOrder, encode(changeRequest{x.number}))
	if err != nil {
		return nil, err
	}
	var q changeReply
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, err
	}
	next, err := p.parse(q.Text, q.Pieces, q.Programs)
	if err != nil {
		return nil, err
	}
	return p.built.Prepare(p.ctx, next, pipeline.TransitionOptions{
		At: q.At, KeepState: q.KeepState, TrialEnvs: q.Envs, Tasks: &[2]uint16{q.Task, q.TaskBack}, Probation: true, Deadline: abandon,
		RolledBack: func(_ string, fault error) {
			select {
			case x.faults <- fault:
			default: // one is enough
			}
		},
	})
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// answer tells the owner what has been done, as often as it must.
func (x *partChange) answer(a changeAnswer) {
	a.Number = x.number
	_, _ = x.part.askUntil(verbDone, encode(a)) // an error says that the part has ended
}

// askUntil asks the owner until it answers, or the part ends.
func (p *part) askUntil(verb string, data []byte) ([]byte, error) {
	for {
		ctx, stop := context.WithTimeout(p.ctx, leaseTime)
		reply, err := p.link.Load().Ask(ctx, cluster.SubjectUp(p.key, verb), data)
		stop()
		if err == nil {
			return reply, nil
		}
		if p.ctx.Err() != nil {
			return nil, context.Cause(p.ctx)
		}
		wait(p.ctx, renewEvery/4)
	}
}

// wish notes what the instances of this host are to do, unless that is older than what is known.
func (p *part) wish(r rest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Number <= p.wished.Number {
		return
	}
	p.wished = r
	p.unrest() // of the former wish
	select {
	case p.wishes <- struct{}{}:
	default:
	}
}

// obey pauses instances and makes them run on, as the newest wish says, until the part ends.
func (p *part) obey() {
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-p.wishes:
		}
		p.mu.Lock()
		ctx, stop := context.WithCancel(p.ctx)
		r := p.wished
		p.unrest = stop
		p.mu.Unlock()
		for ctx.Err() == nil && !p.settle(ctx, &r) {
			wait(ctx, renewEvery/4)
		}
		stop()
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// settle makes the instances be as a wish says, tells the owner, and reports whether it has done all of that.
func (p *part) settle(ctx context.Context, r *rest) bool {
	var paused, running []string
	for _, name := range p.share.Instances {
		if slices.Contains(r.Instances, name) {
			paused = append(paused, name)
		} else {
			running = append(running, name)
		}
	}
	if len(running) > 0 {
		if _, err := p.built.Resume(ctx, running); err != nil {
			p.log.Warn("components of the run do not run on", "components", running, "why", err)
		}
	}
	if len(paused) > 0 {
		answers, err := p.built.Pause(ctx, paused)
		if err != nil || slices.ContainsFunc(answers, func(a control.Answer) bool { return a.State != control.Paused }) {
			return false
		}
		for _, name := range paused {
			if !p.flushed(ctx, name) {
				return false
			}
		}
	}
	ctx, stop := context.WithTimeout(ctx, leaseTime)
	defer stop()
	_, err := p.link.Load().Ask(ctx, cluster.SubjectUp(p.key, verbRest), encode(restReply{p.share.Number, r.Number}))
	return err == nil
}

// flushed waits until the owner has all that a paused instance has sent.
func (p *part) flushed(ctx context.Context, name string) bool {
	s := p.streamOf(p.idOf(name))
	for !p.delivered(name) || !s.idle() {
		if ctx.Err() != nil {
			return false
		}
		wait(ctx, time.Millisecond)
	}
	return true
}

// delivered reports whether what an instance has sent has come to the stands of other hosts' instances.
func (p *part) delivered(name string) bool {
	of, _, _ := strings.Cut(name, "[")
	for _, w := range p.built.Wires() {
		if strings.HasPrefix(w.Wire, of+".") && w.Queued+w.Parked > 0 {
			return false
		}
	}
	p.mu.Lock()
	stands := p.stands
	p.mu.Unlock()
	for _, e := range stands {
		e.h.Receiver.Loop().Do(func() {}) // a slot that takes the last of it has ended
	}
	return true
}

// idle reports whether nothing is on its way to the owner.
func (s *stream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.opened || len(s.pending) == 0 && len(s.items) == 0
}

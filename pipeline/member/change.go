package member

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/component"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
)

// far is a change of the environments of one share on its host, as the owner sees it. The owner's pipeline changes each instance by itself: the
// first that commits, settles or cancels does so for all. Its fields are guarded by the mu of Away.
type far struct {
	order
	key      string // of the host; empty: no host has the instance
	host     string // its name
	to       *build
	from     string // what the share ran before, see build.envs
	what     changeReply
	members  []*farEnvs
	prepared chan struct{} // closed when the host has prepared it, or cannot
	failed   string        // why not
	lost     bool          // its host is gone, or never was there: nothing is told to it
	crossed  bool          // the environments of all instances have changed, whether an instance has committed or not
}

// farEnvs is the change of the environments of one instance on another host.
type farEnvs struct {
	*far
	s         *source
	c         component.EnvChange
	committed bool
	over      bool // Went has been called
}

var _ component.PreparedEnvs = (*farEnvs)(nil)

// runner stands for an instance that runs environments on another host.
type runner struct{ *source }

var _ component.EnvRunner = runner{}

// EnvName is component.EnvRunner's.
func (r runner) EnvName() string { return r.made.(component.EnvRunner).EnvName() }

// PrepareEnvs has the instance's host prepare the change of which Away.Prepare knows. An instance that no host has changes when it begins on one.
func (r runner) PrepareEnvs(ctx context.Context, c component.EnvChange) (component.PreparedEnvs, error) {
	a := r.away
	a.mu.Lock()
	x := &farEnvs{s: r.source, c: c, far: a.farOf(r.name, &c)}
	x.members = append(x.members, x)
	a.mu.Unlock()
	a.tell(x.key)
	select {
	case <-x.prepared:
	case <-ctx.Done():
		a.advance(x.far, stageCancel)
		return nil, x.late(ctx)
	}
	a.mu.Lock()
	failed, host := x.failed, x.host
	a.mu.Unlock()
	if failed != "" {
		a.advance(x.far, stageCancel)
		return nil, &pipeline.ChangeError{
			Code: CodeNext, Reason: fmt.Sprintf("its host, %s, cannot have the next environments: %s", host, failed),
			Help: "fix that on " + host + " and try again, or end rlhost join there: its components begin on another host",
		}
	}
	return x, nil
}

// late is the error of a host that has not answered within the time of the change, or until the run has ended.
func (x *farEnvs) late(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	return &pipeline.ChangeError{
		Code: CodeUnprepared, Reason: fmt.Sprintf("its host, %s, is here and has not prepared the next environments in time", x.host),
		Help: "see what they wait for in their first calls on " + x.host + ", or end rlhost join there: its components begin on another host",
	}
}

// farOf returns the change under way of the share that has an instance, with mu held.
func (a *Away) farOf(instance string, c *component.EnvChange) *far {
	of := a.places.of(instance)
	if of != nil {
		if _, here := a.places.here[of.key]; !here {
			of = nil
		}
	}
	if of == nil {
		f := &far{lost: true, prepared: make(chan struct{})}
		close(f.prepared)
		return f
	}
	for _, f := range a.fars {
		if f.Share == of.Number && f.to == a.next && f.Stage == stagePrepare {
			return f
		}
	}
	a.lastFar++
	text, files := of.build.with(a.next)
	f := &far{
		order: order{a.lastFar, of.Number, stagePrepare}, key: of.key, host: of.host, to: a.next, from: of.envs, prepared: make(chan struct{}),
		what: changeReply{
			Text: text, Pieces: files, Programs: a.next.programsOver(of.build), At: c.At, KeepState: c.KeepState, Envs: c.Envs, Task: c.Task, TaskBack: c.TaskBack,
		},
	}
	a.fars = append(a.fars, f)
	return f
}

// advance takes a change further, and tells its host.
func (a *Away) advance(f *far, to stage) {
	a.mu.Lock()
	if f.Stage.final() || f.lost {
		a.mu.Unlock()
		return
	}
	f.Stage = to
	if of := a.places.numbered(f.Share); of != nil {
		if to == stageCommit {
			of.envs = f.to.envs
		} else if to == stageCancel {
			of.envs = f.from
		}
	}
	a.mu.Unlock()
	a.tell(f.key)
}

// Commit is component.PreparedEnvs'.
func (x *farEnvs) Commit() error {
	a := x.s.away
	a.mu.Lock()
	x.committed = true
	over, first := x.lost || x.crossed, x.Stage == stagePrepare
	x.over = x.over || over
	a.mu.Unlock()
	switch {
	case over:
		x.c.Went(component.EnvsWent{})
	case first:
		a.advance(x.far, stageCommit)
	}
	return nil
}

// Cancel is component.PreparedEnvs'.
func (x *farEnvs) Cancel() { x.s.away.advance(x.far, stageCancel) }

// Settle is component.PreparedEnvs'.
func (x *farEnvs) Settle() { x.s.away.advance(x.far, stageSettle) }

// Close is component.PreparedEnvs'.
func (x *farEnvs) Close() error {
	x.s.away.advance(x.far, stageCancel)
	return nil
}

// tells calls fn on the loop of the instance.
func (x *farEnvs) tells(fn func()) {
	x.s.h.Receiver.Control(func(*hostabi.Message) { fn() }, hostabi.Message{})
}

// went tells each instance that has committed that the environments of all have changed; the others learn it when they commit. The first gets the
// counts, with mu held.
func (f *far) went(w component.EnvsWent) {
	f.crossed = true
	for _, x := range f.members {
		if x.over || !x.committed {
			continue
		}
		counts := w
		w = component.EnvsWent{}
		x.over = true
		x.tells(func() { x.c.Went(counts) })
	}
}

// fails tells that the next environments have failed: before they have all changed, or on probation, when the host runs the previous ones again. Where
// the probation has just ended the share is replaced by one with the next ones.
func (a *Away) fails(f *far, why string) {
	x := f.members[0]
	x.tells(func() {
		fault := errors.New(why)
		switch {
		case x.c.OnFault == nil || x.c.OnFault(fault):
			a.mu.Lock()
			over := x.over
			if of := a.places.numbered(f.Share); of != nil {
				of.envs = f.from
			}
			a.mu.Unlock()
			if over {
				x.c.RolledBack(fault)
			}
			a.advance(f, stageCancel)
		default:
			a.renew(f.Share)
		}
	})
}

// renew ends a share, and gives its instances to a host that has room.
func (a *Away) renew(number uint64) {
	a.mu.Lock()
	ended := a.places.endOne(number)
	if !a.held {
		ended = append(ended, a.replace()...)
	}
	a.mu.Unlock()
	a.leave(ended)
}

// answerOrder answers what a change is.
func (a *Away) answerOrder(_ string, data []byte) []byte {
	var q changeRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.farNumbered(q.Number); f != nil {
		return encode(f.what)
	}
	return nil
}

func (a *Away) farNumbered(number uint64) *far {
	if i := slices.IndexFunc(a.fars, func(f *far) bool { return f.Number == number }); i >= 0 {
		return a.fars[i]
	}
	return nil
}

// answerDone takes what a host has done of a change. A host that says it again is told the same.
func (a *Away) answerDone(subject string, data []byte) []byte {
	var q changeAnswer
	if err := json.Unmarshal(data, &q); err != nil {
		return nil
	}
	a.mu.Lock()
	f := a.farNumbered(q.Number)
	fault := false
	switch {
	case f == nil || f.key != cluster.KeyOf(subject):
	case q.Stage.final():
		a.fars = slices.DeleteFunc(a.fars, func(o *far) bool { return o == f })
	case q.Stage == stagePrepare:
		f.ready(q.Failed)
	case q.Stage == stageFault || q.Failed != "":
		fault = f.Stage != stageCancel
	case q.Stage == stageCommit:
		f.went(q.Went)
	}
	a.mu.Unlock()
	if fault {
		a.fails(f, q.Failed)
	}
	return []byte("{}")
}

// ready ends the waiting for a host, with mu held.
func (f *far) ready(failed string) {
	select {
	case <-f.prepared:
	default:
		f.failed = failed
		close(f.prepared)
	}
}

// lose ends the changes of a host that is lost, with mu held, and returns the shares that end with them: whatever of a change they have made, they
// begin with the pipeline as it is then. Nobody waits for them.
func (a *Away) lose(key string) (ended []*share) {
	a.fars = slices.DeleteFunc(a.fars, func(f *far) bool {
		if f.key != key {
			return false
		}
		f.lost = true
		f.ready("")
		f.went(component.EnvsWent{})
		ended = append(ended, a.places.endOne(f.Share)...)
		return true
	})
	return ended
}

// orders is what a host is to do of changes, with mu held.
func (a *Away) orders(key string) (list []order) {
	for _, f := range a.fars {
		if f.key == key {
			list = append(list, f.order)
		}
	}
	return list
}

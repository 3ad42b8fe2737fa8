package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// ErrBusy is wrapped by Prepare while another change is being prepared or committed; the message says which.
var ErrBusy = errors.New("another change is under way")

// ErrNothing is returned by Prepare when the next graph asks for nothing that the running one does not have.
var ErrNothing = errors.New("nothing is to be changed")

// ChangeError says why a change cannot be made while the run goes on. Nothing has changed.
type ChangeError struct {
	Code   control.Code
	Reason string
	Help   string
	Err    error // what it wraps, or nil
}

// Error tells the reason.
func (e *ChangeError) Error() string { return e.Reason }

// Unwrap returns the error below, or nil.
func (e *ChangeError) Unwrap() error { return e.Err }

func refuse(code control.Code, help, format string, args ...any) *ChangeError {
	return &ChangeError{Code: code, Reason: fmt.Sprintf(format, args...), Help: help}
}

// TransitionOptions say how a change is made.
type TransitionOptions struct {
	At component.Boundary // of environments
	// KeepState carries the running episodes of environments over where both versions can.
	KeepState bool
	// TrialEnvs is how many environments of each component go over; 0 means all. See component.EnvChange.
	TrialEnvs int
	// Probation keeps the previous version ready until Settle, and deals with failures of the new one.
	Probation bool
	// Fell is called once, on a goroutine of its own, when a new version has failed during its probation: environments
	// are back at the previous version then, a component stands still until the pipeline goes back to the graph before,
	// by another Prepare and Commit. The rest of the run goes on.
	Fell func(component string, fault error)
	// Deadline is how long Commit waits for each boundary; 0 means a minute.
	Deadline time.Duration
}

// defaultDeadline is how long a commit waits for a boundary.
const defaultDeadline = time.Minute

// Outcome tells what a commit did.
type Outcome struct {
	Envs      int     // environments that went over
	Kept      int     // of them, with their episode
	Truncated int     // of them, whose episode was ended for it
	Dropped   uint64  // env steps that were dropped
	PauseNS   []int64 // how long stepping stood still, for each split
	EnvStep   uint64  // env steps made when it was complete
	Replaced  []string
	Notes     []string
}

func (o *Outcome) add(w component.EnvsWent) {
	o.Envs += w.Envs
	o.Kept += w.Kept
	o.Truncated += w.Truncated
	o.Dropped += w.Dropped
	o.PauseNS = append(o.PauseNS, w.PauseNS...)
}

func (o *Outcome) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// Transition is a change of a running pipeline that has been prepared: everything that it needs is loaded, made and
// started, and nothing that runs has changed. Its owner calls Commit or Close, and after a Commit Settle. Methods may
// be called from any goroutine but those of the pipeline's loops.
type Transition struct {
	p       *Pipeline
	options TransitionOptions
	before  *assembly
	next    *assembly
	plan    *plan

	envs  []*envStep  // environments that go over, one for each instance
	swaps []*swapStep // instances that are replaced
	made  []*instance // for this change

	// Of Commit: how to take back what has been changed, and by what the way back replaced instances and connections.
	undo     []func() error
	undone   map[*instance]*instance
	relinked map[*bus.Connection]*bus.Connection
	kept     []*swapStep // that could not be taken back

	mu      sync.Mutex
	stage   stage
	trusted bool                 // faults of new versions are those of any
	broken  chan struct{}        // closed at the first fault of a new version before that
	faulty  string               // component of that
	err     error                // the fault
	told    bool                 // Fell has been called, or will be
	ends    component.StopReason // why a new version wants the run to end
}

// stage is how far a Transition is.
type stage uint8

const (
	prepared stage = iota
	committing
	committed // on probation, if there is one
	settled
	closed
)

// Prepare makes a change of the running pipeline ready: to what next says, which With or Parse made. It loads and
// compiles plugins, checks them against those that run, makes and starts new instances; it blocks on all that, and ctx
// or the end of the run ends it. What runs is not touched.
//
// Errors: Problems where a file is to blame, a *ChangeError for what cannot be changed, ErrNothing, ErrBusy, ErrEnded.
// After an error everything has been released.
func (p *Pipeline) Prepare(ctx context.Context, next *graph.Graph, o TransitionOptions) (*Transition, error) {
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	t := &Transition{p: p, options: o, broken: make(chan struct{}),
		undone: map[*instance]*instance{}, relinked: map[*bus.Connection]*bus.Connection{}}
	ctx, leave, err := p.life.enter(ctx, t)
	if err != nil {
		return nil, err
	}
	defer leave()
	t.know(func() { t.before = p.now() })
	if err := t.prepare(ctx, next); err != nil {
		if ended := p.life.over(); ended != nil {
			err = ended
		}
		return nil, errors.Join(err, t.release())
	}
	return t, nil
}

// know changes what others look at while the change is being prepared.
func (t *Transition) know(change func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change()
}

func (t *Transition) prepare(ctx context.Context, next *graph.Graph) error {
	plan, err := planOf(t.before, next)
	if err != nil {
		return err
	}
	t.know(func() { t.plan = plan })
	loaded, err := t.p.nextAssembly(ctx, t.before, next)
	if err != nil {
		return err
	}
	t.know(func() {
		t.next = loaded
		t.plan.needEnvs(t.next)
	})
	if err := t.prepareInstances(ctx); err != nil {
		return err
	}
	if err := t.prepareEnvs(ctx); err != nil {
		return err
	}
	if t.nothing() {
		return ErrNothing
	}
	return context.Cause(ctx)
}

// nothing reports whether the next graph runs already.
func (t *Transition) nothing() bool {
	return len(t.envs) == 0 && t.plan.empty()
}

// Changes returns what the transition changes.
func (t *Transition) Changes() []control.Change { return t.plan.changes() }

// Graph returns the graph that runs once the transition is committed.
func (t *Transition) Graph() *graph.Graph { return t.next.graph }

// Plugin returns the newly loaded plugin of an environment, or nil if that does not change. It is valid until the
// transition is closed, or another version of it has been committed and settled.
func (t *Transition) Plugin(env string) env.Plugin {
	v := t.next.plugins[env]
	if v == nil || t.before.plugins[env] == v {
		return nil
	}
	return v.plugin
}

// Commit makes the change and returns when all of it has been made. On an error everything is as before, and the
// transition is closed: a *ChangeError, ErrEnded, or the cause of ctx's end.
func (t *Transition) Commit(ctx context.Context) (Outcome, error) {
	ctx, leave, err := t.p.life.join(ctx)
	if err != nil {
		return Outcome{}, err // the end of the run has closed it, or will
	}
	defer leave()
	if err := t.advance(prepared, committing); err != nil {
		return Outcome{}, err
	}
	defer t.p.lift()()
	var o Outcome
	if err := t.commit(ctx, &o); err != nil {
		if ended := t.p.life.over(); ended != nil {
			err = ended
		}
		return Outcome{}, errors.Join(err, t.release())
	}
	return o, nil
}

// commit makes the changes one after the other, and takes back those made if one cannot be made.
func (t *Transition) commit(ctx context.Context, o *Outcome) error {
	if err := t.fault(); err != nil {
		return err
	}
	if t.plan.structural() {
		s := t.p.standing
		if err := s.take(ctx); err != nil {
			return err
		}
		s.changing.Store(true)
		defer func() {
			s.changing.Store(false)
			s.put()
		}()
	}
	for _, step := range []func(context.Context, *Outcome) error{t.commitEnvs, t.commitSwaps, t.commitGraph} {
		if err := step(ctx, o); err != nil {
			return errors.Join(err, t.takeBack())
		}
	}
	if err := t.p.life.over(); err != nil {
		return errors.Join(err, t.takeBack())
	}
	if !t.options.Probation {
		if err := t.trust(); err != nil {
			return errors.Join(err, t.takeBack())
		}
	}
	o.EnvStep = t.p.stats.Counter("rollout/env_steps").Value()
	t.install(o)
	return nil
}

func (t *Transition) commitSwaps(ctx context.Context, o *Outcome) error {
	for _, s := range t.swaps {
		if err := s.commit(ctx, o); err != nil {
			return err
		}
		t.undo = append(t.undo, s.undo)
	}
	return nil
}

// commitGraph changes who is wired to whom.
func (t *Transition) commitGraph(ctx context.Context, _ *Outcome) error {
	if err := t.restEnded(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.options.Deadline, refuse(control.CodeLate, "",
		"messages still wait for room on wires that are to change after %v", t.options.Deadline))
	defer cancel()
	if err := t.rewire(ctx); err != nil {
		return err
	}
	return t.fault()
}

// advance moves from one stage to another.
func (t *Transition) advance(from, to stage) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stage != from {
		return fmt.Errorf("the change is %s", t.stage)
	}
	t.stage = to
	return nil
}

// String names the stage.
func (s stage) String() string {
	return [...]string{"prepared", "being committed", "committed", "settled", "closed"}[s]
}

// title says what is being changed, in one line.
func (t *Transition) title() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.plan == nil {
		return "a change is being prepared"
	}
	var parts []string
	for _, c := range t.plan.changes() {
		parts = append(parts, c.What+" "+c.Name)
	}
	return strings.Join(parts, ", ")
}

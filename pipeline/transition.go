package pipeline

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
)

// TransitionOptions configure a change.
type TransitionOptions struct {
	Number uint64             // of the change in the run's events, for recordings; 0 where it has none
	At     component.Boundary // of environments
	// KeepState keeps the running episodes of environments where both versions can.
	KeepState bool
	// TrialEnvs is how many environments of each component change; 0 means all. See component.EnvChange.
	TrialEnvs int
	// Probation keeps the previous version ready until Settle, and handles failures of the new one.
	Probation bool
	// Made is called by Commit as soon as the change is complete: boundaries from then on have all of it. nil if nobody asks.
	Made func()
	// RolledBack is called once, on a separate goroutine, when a new version has failed during its probation:
	// environments are back at the previous version then, a component is held until the pipeline returns to the previous
	// graph, by another Prepare and Commit. The rest of the run continues.
	RolledBack func(component string, fault error)
	// Tasks are the tasks of the next environments' episodes, and of the previous ones' where they come back; nil: the ones that follow.
	Tasks *[2]uint16
	// Deadline is how long Prepare waits for environments on another host, and Commit for each boundary; 0 means a minute.
	Deadline time.Duration
	// Force is how long an instance may take to pause before it is removed as if it had failed: its unfinished work is lost, and
	// Outcome.Notes count it. A learner is never removed so, because its learning would be lost. 0 is never.
	Force time.Duration
}

// defaultDeadline is how long a commit waits for a boundary.
const defaultDeadline = time.Minute

// Outcome is the effect of a commit.
type Outcome struct {
	Envs      int     // environments that changed
	Kept      int     // of them, with their episode
	Truncated int     // of them, whose episode was ended for it
	Dropped   uint64  // env steps that were dropped
	PauseNS   []int64 // how long stepping paused, for each split
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
// be called from any goroutine but the pipeline's loops.
type Transition struct {
	p       *Pipeline
	options TransitionOptions
	before  *assembly
	next    *assembly
	plan    *plan
	still   bool // of Commit: the run is paused, and stays so

	envs  []*envChange   // environments that change, one for each instance
	swaps []*replacement // instances that are replaced
	made  []*instance    // for this change

	// Of Commit: how to revert the changes, and the replacements of instances and connections.
	undo     []func() error
	undone   map[*instance]*instance
	relinked map[*bus.Connection]*bus.Connection
	kept     []*replacement // that could not be reverted

	state changeState
}

// Of a version on probation; see probation.
func (t *Transition) onFault(name string, fault error) bool  { return t.state.onFault(name, fault) }
func (t *Transition) waits(reason component.StopReason) bool { return t.state.waits(reason) }
func (t *Transition) sound() bool                            { return t.state.sound() }

// envChange is the change of the environments of one instance.
type envChange struct {
	t        *Transition
	x        member
	from, to *loading.Env
	// fromTrial: some of the previous environments were on trial.
	fromTrial bool
	task      uint16 // of the new environments' episodes
	back      uint16 // of the old ones', if they come back
	prepared  component.PreparedEnvs
	went      chan component.EnvsWent // takes one

	committed atomic.Bool // Commit has been called
	over      atomic.Bool // cancelled, settled, or the component has changed back by itself: nothing more to do
}

// replacement is the replacement of one instance by another with the same name, ID and index.
type replacement struct {
	t    *Transition
	of   *graph.Component
	old  member
	new  *instance
	done bool // the new one has its place
	// forced: the old one did not pause.
	forced bool
	// waits: the new one begins once its outgoing wires are the next graph's, so that its requests reach the right receivers and no other.
	waits bool
}

// tell calls RolledBack once, if the change is complete and a new version has failed.
func (t *Transition) tell() {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	name, fault := t.state.untold()
	if fault == nil {
		return
	}
	_, leave, err := t.p.changes.join(t.p.changes.ctx)
	if err != nil {
		return
	}
	t.state.told = true
	go func() {
		defer leave()
		t.TakeBack()
		if t.options.RolledBack != nil {
			t.options.RolledBack(name, fault)
		}
	}()
}

// uses is pendingChange's.
func (t *Transition) uses(fn func(*loading.Env)) (known bool) {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	t.before.eachEnv(fn)
	t.next.eachEnv(fn)
	return t.next != nil
}

// replacing is pendingChange's.
func (t *Transition) replacing() map[*instance]bool {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	if t.state.stage != committing {
		return nil
	}
	list := map[*instance]bool{}
	for _, e := range t.envs {
		list[e.x.instance] = true
	}
	for _, r := range t.swaps {
		list[r.old.instance] = true
	}
	return list
}

// title describes the change in one line.
func (t *Transition) title() string {
	t.state.mu.Lock()
	defer t.state.mu.Unlock()
	if t.plan == nil {
		return "a change is being prepared"
	}
	var parts []string
	for _, c := range t.plan.changes() {
		parts = append(parts, c.What+" "+c.Name)
	}
	return strings.Join(parts, ", ")
}

package pipeline

import (
	"fmt"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
)

// liveness is the mutable state of an instance.
type liveness struct {
	mu        sync.Mutex
	envsInUse []*loading.Env                // it uses: open until it has changed to others, or stopped
	env       *loading.Env                  // its environments are from, if it runs some
	trial     bool                          // only some of them, in addition to the previous version's
	task      uint16                        // of their episodes
	readers   map[string]int                // largest number reported to it, by signal
	going     bool                          // environments are on their way
	change    settler                       // of its environments, committed and not settled
	watches   []probation                   // changes whose probation it is on, and the change that makes it; the newest is last
	fault     error                         // why it failed, if that was handled
	gone      bool                          // it was replaced, or has ended
	state     *component.State              // initial state, for its replacement after a failure
	loses     func(again []hostabi.Message) // of Host.Keeps, when it began with that
	owes      *owed                         // nil where it began with the run; set before it starts
}

// probation handles failures of an instance that a change has made, and its requests to end the run, until the change
// is settled.
type probation interface {
	// onFault notes a fault of a new version, and reports whether the previous one replaces it.
	onFault(name string, fault error) bool
	// tell reports to the owner of the change, once it is complete.
	tell()
	// waits reports whether the end of the run waits for the change to be made.
	waits(reason component.StopReason) bool
	// sound reports whether the change has been made and is watched, and nothing has failed.
	sound() bool
}

// settler is a committed change that can still be reverted.
type settler interface{ settle() }

// uses notes an environment that the instance was given.
func (l *liveness) uses(v *loading.Env) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.envsInUse, v) {
		l.envsInUse = append(l.envsInUse, v)
	}
	if l.env == nil || l.env.Name == v.Name {
		l.env = v
	}
}

// holds reports whether the instance uses a plugin.
func (l *liveness) holds(v *loading.Env) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.envsInUse, v)
}

// runs returns the plugin of the environments.
func (l *liveness) runs() *loading.Env {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.env
}

// runsAll reports whether all environments of the instance are of a plugin.
func (l *liveness) runsAll(v *loading.Env) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.env == v && !l.trial
}

// open notes a plugin that the instance is about to use.
func (l *liveness) open(v *loading.Env) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.envsInUse = append(l.envsInUse, v)
}

// released notes that the instance has released the environments that it was about to use.
func (l *liveness) released(gone *loading.Env) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.envsInUse, gone); i >= 0 {
		l.envsInUse = slices.Delete(l.envsInUse, i, i+1)
	}
}

// asked notes the number of a signal's readers as reported to the instance.
func (l *liveness) asked(signal string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.readers == nil {
		l.readers = map[string]int{}
	}
	l.readers[signal] = max(l.readers[signal], n)
}

// suffices reports whether the instance has blocks for as many readers as a graph has.
func (l *liveness) suffices(g *graph.Graph, name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for signal, n := range l.readers {
		if g.Readers(name, signal) > n {
			return false
		}
	}
	return true
}

// replaceChange makes s the change that can be reverted, and returns the previous one.
func (l *liveness) replaceChange(s settler) settler {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.change
	l.change = s
	return before
}

func (l *liveness) dropChange(s settler) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.change == s {
		l.change = nil
	}
}

// between notes whether environments are changing from one version to the other, so that there is no state to save.
func (l *liveness) between(yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.going = yes
}

// unsavable returns why no snapshot of the instance can be taken now, or nil.
func (l *liveness) unsavable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.fault != nil:
		return fmt.Errorf("%w: it has failed: %w", component.ErrNoSnapshot, l.fault)
	case l.going:
		return fmt.Errorf("%w: its environments are being replaced", component.ErrNoSnapshot)
	}
	return nil
}

// settle ends one probation of an instance.
func (l *liveness) settle(t probation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.watches, t)
	if i < 0 {
		return
	}
	if l.watches = slices.Delete(l.watches, i, i+1); len(l.watches) > 0 {
		return
	}
	l.state, l.loses = nil, nil
	if l.owes != nil {
		l.owes.settle()
	}
}

// watched returns the changes whose probation the instance is on, oldest first, and whether it has left the run.
func (l *liveness) watched() (by []probation, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.watches), l.gone
}

// proves returns the changes whose new versions an instance runs, as long as they are watched.
func (l *liveness) proves() []probation {
	list, _ := l.watched()
	l.mu.Lock()
	s, ok := l.change.(*envChange)
	l.mu.Unlock()
	if ok && !s.over.Load() && !slices.Contains(list, probation(s.t)) {
		list = append(list, s.t)
	}
	return slices.DeleteFunc(list, func(t probation) bool { return !t.sound() })
}

// leave notes that the instance has left the run.
func (l *liveness) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
}

// failed returns why the instance failed, if that was handled.
func (l *liveness) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault
}

// remember keeps the state that an instance began with during its probation, and the function that notes that its replacement goes back to it.
func (l *liveness) remember(state *component.State, loses func(again []hostabi.Message)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.loses = state, loses
}

// began returns the state that an instance on probation began with; nil if there is none.
func (l *liveness) began() *component.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// goesBack notes that the replacement of a failed instance goes back to the state that it began with, with the messages that it had
// not begun with.
func (l *liveness) goesBack(waiting []component.Waiting) {
	l.mu.Lock()
	loses, failed := l.loses, l.fault != nil
	l.mu.Unlock()
	if loses == nil || !failed {
		return
	}
	again := make([]hostabi.Message, len(waiting))
	for i := range waiting {
		again[i] = waiting[i].Message
	}
	loses(again)
}

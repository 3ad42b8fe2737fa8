package pipeline

import (
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// liveness is what changes of an instance while it lives.
type liveness struct {
	mu      sync.Mutex
	volumes []*volume        // it uses: open until it has gone over to others, or stopped
	env     *volume          // its environments are from, if it runs some
	trial   bool             // only some of them, beside those of the one before
	task    uint16           // of their episodes
	readers map[string]int   // most that it was told of, by signal
	going   bool             // environments are on their way
	change  *envStep         // of its environments, committed and not settled
	watch   *Transition      // on whose probation it is, or being made
	fault   error            // why it failed, while somebody dealt with it
	gone    bool             // it was replaced, or has ended
	state   *component.State // that it was made with, for one who takes its place after a failure
}

// uses notes an environment that the instance was given.
func (l *liveness) uses(v *volume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.volumes, v) {
		l.volumes = append(l.volumes, v)
	}
	if l.env == nil || l.env.env == v.env {
		l.env = v
	}
}

// holds reports whether the instance uses a plugin.
func (l *liveness) holds(v *volume) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.volumes, v)
}

// runs returns what the environments are from.
func (l *liveness) runs() *volume {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.env
}

// asked notes how many readers the instance was told a signal has.
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

package builtin

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// keepLoaded is how long an environment that was loaded for its spec waits to be used.
const keepLoaded = 5 * time.Second

// spec loads an environment to see what it is; see graph.Parts. The next load of the same gets it, because a Python environment takes half a
// second to start.
func (e *Engines) spec(ctx context.Context, name string, t graph.EnvTable, dir string) (hostabi.EnvSpec, error) {
	p, err := e.load(ctx, name, t, dir)
	if err != nil {
		return hostabi.EnvSpec{}, err
	}
	return p.Spec(), e.loaded.keep(p, loadedAs{name, t, dir})
}

// loadedAs is what an environment was loaded from.
type loadedAs struct {
	name  string
	table graph.EnvTable
	dir   string
}

// loaded is an environment that was loaded for its spec and waits to be used. The zero value has none.
type loaded struct {
	mu     sync.Mutex // held while one is closed, so that its engine waits
	plugin env.Plugin // guarded by mu; nil: none waits
	as     loadedAs
	end    *time.Timer
}

// keep replaces the one that waits.
func (l *loaded) keep(p env.Plugin, as loadedAs) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.closeLocked()
	l.plugin, l.as = p, as
	l.end = time.AfterFunc(keepLoaded, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.plugin == p {
			_ = l.closeLocked() // nobody has used it
		}
	})
	return err
}

// take returns the one that waits if it was loaded from the same; else nil.
func (l *loaded) take(as loadedAs) env.Plugin {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plugin == nil || !reflect.DeepEqual(l.as, as) {
		return nil
	}
	l.end.Stop()
	p := l.plugin
	l.plugin = nil
	return p
}

// close closes the one that waits.
func (l *loaded) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closeLocked()
}

func (l *loaded) closeLocked() error {
	if l.plugin == nil {
		return nil
	}
	l.end.Stop()
	err := l.plugin.Close()
	l.plugin = nil
	return err
}

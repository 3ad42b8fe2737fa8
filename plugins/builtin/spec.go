package builtin

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// keepLoaded is how long an environment that was loaded for its spec waits to be used.
const keepLoaded = 5 * time.Second

// spec loads an environment for its description; see graph.Parts. The next load of the same gets it, or why there is none: a Python environment
// takes half a second to start, and says once why it does not.
func (e *Engines) spec(ctx context.Context, name string, t graph.EnvTable, dir string) (hostabi.EnvSpec, error) {
	p, err := e.load(ctx, name, t, dir)
	if closing := e.loaded.keep(p, err, loadedFrom(name, t, dir)); err != nil || closing != nil {
		return hostabi.EnvSpec{}, errors.Join(err, closing)
	}
	return p.Spec(), nil
}

// loadedAs is what an environment was loaded from.
type loadedAs struct {
	name  string
	table graph.EnvTable
	dir   string
	made  string // digest of a native plugin's program: its files may change meanwhile
}

func loadedFrom(name string, t graph.EnvTable, dir string) loadedAs {
	as := loadedAs{name: name, table: t, dir: dir}
	if t.Plugin != nil {
		as.made = t.Digest(dir, nil)
	}
	return as
}

// loaded is an environment that was loaded for its spec and waits to be used. The zero value has none.
type loaded struct {
	mu     sync.Mutex  // held while one is closed, so that its engine waits
	end    *time.Timer // guarded by mu; nil: none waits
	plugin env.Plugin  // nil if it could not be loaded
	err    error       // why not
	as     loadedAs
}

// keep replaces the one that waits.
func (l *loaded) keep(p env.Plugin, err error, as loadedAs) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	closing := l.closeLocked()
	var end *time.Timer
	end = time.AfterFunc(keepLoaded, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.end == end {
			_ = l.closeLocked() // nobody has used it
		}
	})
	l.end, l.plugin, l.err, l.as = end, p, err, as
	return closing
}

// take returns the one that waits; ok is false if there is none that was loaded from the same.
func (l *loaded) take(as loadedAs) (p env.Plugin, err error, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	as.table.Folder = nil // the one that waits was loaded a moment ago
	if l.end == nil || !reflect.DeepEqual(l.as, as) {
		return nil, nil, false
	}
	p, err = l.plugin, l.err
	l.forgetLocked()
	return p, err, true
}

func (l *loaded) forgetLocked() {
	l.end.Stop()
	l.end, l.plugin, l.err = nil, nil, nil
}

// close closes the one that waits.
func (l *loaded) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closeLocked()
}

func (l *loaded) closeLocked() error {
	if l.end == nil {
		return nil
	}
	p := l.plugin
	l.forgetLocked()
	if p == nil {
		return nil
	}
	return p.Close()
}

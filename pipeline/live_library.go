package pipeline

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// volume is a loaded environment plugin.
type volume struct {
	env    string         // table that it was loaded for
	table  graph.EnvTable // what that said
	digest string         // of the source
	plugin env.Plugin
}

// serves reports whether the volume is what a table asks for: the same source, however it is named.
func (v *volume) serves(env string, t *graph.EnvTable, digest string) bool {
	a, b := v.table, *t
	a.Use, b.Use, a.SHA256, b.SHA256 = "", "", "", ""
	if t.Plugin != nil { // of a native plugin Use says which of its environments
		a.Use, b.Use = v.table.Use, t.Use
	}
	return v.env == env && digest != "" && v.digest == digest && reflect.DeepEqual(a, b)
}

// library keeps the loaded plugins, those of a graph that ran before included.
type library struct {
	mu      sync.Mutex
	volumes []*volume // in the order of loading
}

// find returns a volume that serves, or nil.
func (l *library) find(env string, t *graph.EnvTable, digest string) *volume {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.volumes, func(v *volume) bool { return v.serves(env, t, digest) })
	if i < 0 {
		return nil
	}
	return l.volumes[i]
}

func (l *library) add(v *volume) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.volumes = append(l.volumes, v)
}

// keep closes all volumes but those that are wanted, the last one loaded first.
func (l *library) keep(wanted func(*volume) bool) error {
	l.mu.Lock()
	var gone []*volume
	l.volumes = slices.DeleteFunc(l.volumes, func(v *volume) bool {
		if wanted(v) {
			return false
		}
		gone = append(gone, v)
		return true
	})
	l.mu.Unlock()
	var errs []error
	for _, v := range slices.Backward(gone) {
		if err := v.plugin.Close(); err != nil {
			errs = append(errs, fmt.Errorf("env %q: %w", v.env, err))
		}
	}
	return errors.Join(errs...)
}

// close closes everything.
func (l *library) close() error { return l.keep(func(*volume) bool { return false }) }

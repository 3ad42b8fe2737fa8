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

// loadedEnv is a loaded environment plugin.
type loadedEnv struct {
	env    string         // table that it was loaded for
	table  graph.EnvTable // what that said
	digest string         // of the source
	plugin env.Plugin
}

// serves reports whether the environment matches a table: the same source, however it is named.
func (v *loadedEnv) serves(env string, t *graph.EnvTable, digest string) bool {
	a, b := v.table, *t
	a.Use, b.Use, a.SHA256, b.SHA256 = "", "", "", ""
	if t.Plugin != nil { // of a native plugin Use says which of its environments
		a.Use, b.Use = v.table.Use, t.Use
	}
	return v.env == env && digest != "" && v.digest == digest && reflect.DeepEqual(a, b)
}

// envCache keeps the loaded plugins, those of previous graphs included.
type envCache struct {
	mu   sync.Mutex
	list []*loadedEnv // in the order of loading
}

// find returns an environment that serves, or nil.
func (l *envCache) find(env string, t *graph.EnvTable, digest string) *loadedEnv {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.list, func(v *loadedEnv) bool { return v.serves(env, t, digest) })
	if i < 0 {
		return nil
	}
	return l.list[i]
}

func (l *envCache) add(v *loadedEnv) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, v)
}

// keep closes all plugins but the wanted ones, the last loaded first.
func (l *envCache) keep(wanted func(*loadedEnv) bool) error {
	l.mu.Lock()
	var gone []*loadedEnv
	l.list = slices.DeleteFunc(l.list, func(v *loadedEnv) bool {
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
func (l *envCache) close() error { return l.keep(func(*loadedEnv) bool { return false }) }

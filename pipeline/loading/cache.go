package loading

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Env is a loaded environment plugin. It is immutable; the Cache that has it closes it.
type Env struct {
	Name   string         // of the table that it was loaded for
	Table  graph.EnvTable // the table's content
	Plugin env.Plugin
	digest string // of the source
	dir    string // that the paths of Table are relative to
	data   string // digest of its folder of data as it was loaded; empty without one
	// wrapData are the same of its wrappers that are modules, by place.
	wrapData map[int]string
}

// serves reports whether the environment matches a table: the same source, even under another path. A resumed run names a program from
// its own folder.
func (v *Env) serves(env string, t *graph.EnvTable, digest string) bool {
	a, b := v.Table, *t
	a.Use, b.Use, a.SHA256, b.SHA256 = "", "", "", ""
	nameless := func(string) string { return "" }
	a.Wrap, b.Wrap = a.WrapAt(nameless), b.WrapAt(nameless)
	if a.Plugin != nil && b.Plugin != nil { // of a native plugin Use says which of its environments
		a.Use, b.Use = v.Table.Use, t.Use
		own, asked := *a.Plugin, *b.Plugin
		own.Path, asked.Path, own.SHA256, asked.SHA256 = "", "", "", ""
		a.Plugin, b.Plugin = &own, &asked
	}
	return v.Name == env && digest != "" && v.digest == digest && reflect.DeepEqual(a, b)
}

// Cache keeps the loaded environments, including previous graphs'. Its zero value is empty; its methods may be called
// from any goroutine.
type Cache struct {
	mu   sync.Mutex
	list []*Env // in the order of loading
}

// find returns an environment that serves, or nil.
func (c *Cache) find(env string, t *graph.EnvTable, digest string) *Env {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.list, func(v *Env) bool { return v.serves(env, t, digest) })
	if i < 0 {
		return nil
	}
	return c.list[i]
}

func (c *Cache) add(v *Env) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, v)
}

// Keep closes all environments but the wanted ones, the last loaded first.
func (c *Cache) Keep(wanted func(*Env) bool) error {
	c.mu.Lock()
	var gone []*Env
	c.list = slices.DeleteFunc(c.list, func(v *Env) bool {
		if wanted(v) {
			return false
		}
		gone = append(gone, v)
		return true
	})
	c.mu.Unlock()
	var errs []error
	for _, v := range slices.Backward(gone) {
		if err := v.Plugin.Close(); err != nil {
			errs = append(errs, fmt.Errorf("env %q: %w", v.Name, err))
		}
	}
	return errors.Join(errs...)
}

// Close closes everything.
func (c *Cache) Close() error { return c.Keep(func(*Env) bool { return false }) }

// Describe returns what an environment of the cache was loaded from, a Described as JSON; nil for another one.
func (c *Cache) Describe(p env.Plugin) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.list {
		if v.Plugin == p {
			doc, _ := json.Marshal(Described{v.Name, v.dir, v.Table.Workers, v.Table.WrapHashes(p), v.data, v.wrapData, v.Table}) // of a file's values
			return doc
		}
	}
	return nil
}

// Described is what an environment was loaded from, as a document. The source leaves out how its processes run.
type Described struct {
	Name    string
	Dir     string // that paths are relative to
	Workers int
	Wraps   map[int]string // SHA-256 of the wrappers that are modules, by place
	// Data is the digest of the folder of data, WrapData of the wrappers' by place; empty without, and in recordings of earlier versions.
	Data     string
	WrapData map[int]string
	Table    graph.EnvTable
}

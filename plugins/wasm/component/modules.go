package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
)

// Source says which file a component is made from and how it is run.
type Source struct {
	env.Source                  // Use is the path of the module; Args are not used
	MaxRestarts   int           // faults of one instance within RestartWindow before the run fails
	RestartWindow time.Duration // faults are forgotten after this long; 0 = never
	Leases        int           // most at once of one instance; 0 = DefaultLeases
}

// DefaultLeases is the default of Source.Leases.
const DefaultLeases = 64

// CodeHash is the code of the error for a file with another hash than the named one.
const CodeHash = "E020"

// Modules are the modules that components are made from. Each is loaded once as long as its file stays the same. Its methods may be
// called concurrently.
type Modules struct {
	runtime *wasm.Runtime

	mu     sync.Mutex
	loaded map[string]*guest.Module // by the hash of the file and the settings
}

// NewModules returns modules that a runtime runs, which must be closed after them.
func NewModules(r *wasm.Runtime) *Modules {
	return &Modules{runtime: r, loaded: map[string]*guest.Module{}}
}

// Close releases the modules. Components that were made from them stay usable.
func (l *Modules) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, m := range l.loaded {
		errs = append(errs, m.Close())
	}
	l.loaded = nil
	return errors.Join(errs...)
}

// Component returns an unconfigured component. It loads the module and runs nothing but its start. The error is a
// *table.Error, unless the runtime is closed.
func (l *Modules) Component(s Source) (core.Component, error) {
	m, err := l.load(s)
	if err != nil {
		return nil, err
	}
	return &component{module: m, source: s}, nil
}

func (l *Modules) load(s Source) (*guest.Module, error) {
	hash, err := files.SHA256(s.Use)
	if err == nil && s.SHA256 != "" && s.SHA256 != hash {
		return nil, &table.Error{Code: CodeHash, Place: s.Use, Reason: fmt.Sprintf("has the SHA-256 %s, not %s", hash, s.SHA256),
			Help: "correct sha256 if the file is the one that is meant"}
	}
	settings := s.ReadData("")
	settings.Name = ""
	key, _ := json.Marshal(settings) // strings and numbers
	key = append(key, settings.DataDigest("")...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded == nil {
		return nil, engine.ErrClosed
	}
	if m := l.loaded[hash+string(key)]; m != nil && err == nil {
		return m, nil
	}
	m, err := l.runtime.LoadComponent(context.Background(), s.Use, nil, settings) // its own limits end it
	if err != nil {
		return nil, err
	}
	l.loaded[m.File.Hash+string(key)] = m
	return m, nil
}

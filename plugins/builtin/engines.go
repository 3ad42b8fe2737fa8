package builtin

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	"github.com/rlhost/rlhost/plugins/process/worker"
	"github.com/rlhost/rlhost/plugins/wasm"
	wasmcomponent "github.com/rlhost/rlhost/plugins/wasm/component"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// Engines run plugins: WebAssembly modules in this process, native programs in others. Each starts when it is needed.
type Engines struct {
	log      *slog.Logger
	compiler string // see Options
	shown    int    // ShownLines
	probes   probes
	loaded   loaded
	unused   sync.Once // an unusable GPU was reported

	mu      sync.Mutex
	modules *wasm.Runtime          // guarded by mu; nil until one is loaded
	parts   *wasmcomponent.Modules // guarded by mu; nil until a component is made of one
	native  *spawn.Runtime         // guarded by mu; nil until one is asked
}

// wasm returns the engine for WebAssembly modules.
func (e *Engines) wasm() (*wasm.Runtime, error) {
	return started(e, &e.modules, func() (*wasm.Runtime, error) {
		return wasm.New(wasm.Options{Log: e.log, Compiler: e.compiler, Shown: e.shown})
	})
}

// components returns the modules that components are made from.
func (e *Engines) components() (*wasmcomponent.Modules, error) {
	r, err := e.wasm()
	if err != nil {
		return nil, err
	}
	return started(e, &e.parts, func() (*wasmcomponent.Modules, error) { return wasmcomponent.NewModules(r), nil })
}

// processes returns the engine for native programs.
func (e *Engines) processes() (*spawn.Runtime, error) {
	return started(e, &e.native, func() (*spawn.Runtime, error) { return spawn.New(spawn.Options{Log: e.log}) })
}

// waits says which processes have long not answered; see graph.Parts.
func (e *Engines) waits() []string {
	e.mu.Lock()
	r := e.native
	e.mu.Unlock()
	if r == nil {
		return nil
	}
	return r.Waits()
}

// started returns an engine, which it starts the first time that works.
func started[T any](e *Engines, engine **T, start func() (*T, error)) (*T, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if *engine != nil {
		return *engine, nil
	}
	made, err := start()
	if err == nil {
		*engine = made
	}
	return made, err
}

// Close releases the engines; their plugins must have been closed.
func (e *Engines) Close() error {
	e.mu.Lock()
	modules, parts, programs := e.modules, e.parts, e.native
	e.mu.Unlock() // closing may take its time, and Abandon must not wait for it
	errs := []error{e.loaded.close()}
	if parts != nil {
		errs = append(errs, parts.Close())
	}
	if modules != nil {
		errs = append(errs, modules.Close())
	}
	if programs != nil {
		errs = append(errs, programs.Close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.modules, e.parts, e.native = nil, nil, nil
	return errors.Join(errs...)
}

// Abandon removes everything that would outlive the program, which ends at once instead of calling Close.
func (e *Engines) Abandon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.native != nil {
		e.native.Abandon()
	}
}

// plugin asks a native plugin for its kinds of components; see graph.Parts.
func (e *Engines) plugin(t graph.PluginTable, dir string) (map[string]graph.Maker, error) {
	r, program, err := e.program(t, dir)
	if err != nil {
		return nil, err
	}
	ctx := context.Background() // the program's own limits end it
	description, err := r.Describe(ctx, program)
	if err != nil {
		return nil, nativeError(err)
	}
	kinds := map[string]graph.Maker{}
	for _, k := range description.Kinds {
		kinds[k.Name] = func() (component.Component, error) {
			c, err := proxy.New(ctx, r, program, k.Name)
			return c, nativeError(err)
		}
	}
	return kinds, nil
}

// module makes components of a WebAssembly module; see graph.Parts.
func (e *Engines) module(t graph.ModuleTable, dir string) graph.Maker {
	source := wasmcomponent.Source{Source: env.Source{Use: t.Use, Grants: t.Grants, Limits: t.Limits.Limits, Data: t.Data, SHA256: t.SHA256}, MaxRestarts: t.MaxRestarts, RestartWindow: t.RestartWindow, Leases: t.Limits.Leases}
	source.Use, source.Data = files.In(dir, source.Use), source.DataIn(dir)
	return func() (component.Component, error) {
		modules, err := e.components()
		if err != nil {
			return nil, err
		}
		return modules.Component(source)
	}
}

// Describe starts the program of a plugin and returns its description.
func (e *Engines) Describe(ctx context.Context, t graph.PluginTable, dir string) (native.Description, error) {
	r, program, err := e.program(t, dir)
	if err != nil {
		return native.Description{}, err
	}
	return r.Describe(ctx, program)
}

// program returns the program of a plugin's table and the engine that runs it.
func (e *Engines) program(t graph.PluginTable, dir string) (*spawn.Runtime, spawn.Program, error) {
	r, err := e.processes()
	if err != nil {
		return nil, spawn.Program{}, err
	}
	program, err := programOf(t, dir)
	return r, program, err
}

// programOf returns the program of a plugin's table; a table without a path is this program.
func programOf(t graph.PluginTable, dir string) (spawn.Program, error) {
	p := spawn.Program{
		Name: t.Name, Path: t.Path, Interpreter: t.Interpreter, Args: t.Args, SHA256: t.SHA256, Env: t.PassEnv, Start: t.Start,
		Restarts: orNever(t.MaxRestarts), RestartWindow: orNever(t.RestartWindow), Stall: orNever(t.Stall), Snapshot: orNever(t.Snapshot), Memory: t.Memory, Place: t.Place,
	}
	if t.Path == "" {
		self, err := os.Executable()
		p.Name, p.Path, p.Args = "rlhost", self, []string{"plugin", "serve"}
		return p, err
	}
	switch {
	case filepath.IsAbs(p.Path):
	case filepath.Base(p.Path) != p.Path:
		p.Path = filepath.Join(dir, p.Path)
	default:
		found, err := exec.LookPath(p.Path)
		if err != nil {
			return p, nativeError(spawn.NotFound(&p, err))
		}
		p.Path = found
	}
	return p, nil
}

// orNever turns 0, which in a file means never, into a Program's value for never.
func orNever[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// load loads an environment: a built-in one, a module file, or one of a native plugin.
func (e *Engines) load(ctx context.Context, name string, t graph.EnvTable, dir string) (env.Plugin, error) {
	if p, err, ok := e.loaded.take(loadedFrom(name, t, dir)); ok {
		return p, err
	}
	source := t.Source
	source.Name = name
	source.Use, _ = t.Locate(dir, Names())
	source.Data = source.DataIn(dir)
	source.Wrap = nil // the wrappers are on this side, whatever runs the environments
	list := t.In(dir).Wrap
	if t.Plugin == nil {
		source.Compile = cmp.Or(source.Compile, module.DefaultCompile) // the process that loads it may take as long
	}
	if !t.Isolated() {
		p, err := e.LoadModule(ctx, source)
		return e.wrapped(p, cmp.Or(err, heldToArgs(p, err, t.Args)), list)
	}
	source.Folder = nil // the process reads its own
	var table graph.PluginTable
	if t.Plugin != nil {
		table = *t.Plugin
	}
	r, program, err := e.program(table, dir)
	if err != nil {
		return nil, err
	}
	program.Place = t.PlaceOf()
	p, err := worker.Load(ctx, r, program, worker.Options{Source: source, Workers: t.Workers})
	return e.wrapped(p, cmp.Or(nativeError(err), heldToArgs(p, err, t.Args)), list)
}

// heldToArgs closes an environment, if it was loaded, that does not take the arguments which it was given, and says why.
func heldToArgs(p env.Plugin, loading error, args map[string]string) error {
	if loading != nil {
		return nil
	}
	spec := p.Spec()
	if err := env.CheckArgs(spec.Args, args); err != nil {
		return errors.Join(err, p.Close())
	}
	return nil
}

// file returns the module of an environment; see graph.Parts.
func (e *Engines) file(t graph.EnvTable, dir string) ([]byte, error) {
	use, _ := t.Locate(dir, Names())
	if content, ok := plugins.Builtins()[use]; ok {
		return content, nil
	}
	return os.ReadFile(use)
}

// LoadModule loads a built-in environment or a module file into this process, with its wrappers.
func (e *Engines) LoadModule(ctx context.Context, s env.Source) (env.Plugin, error) {
	r, err := e.wasm()
	if err != nil {
		return nil, err
	}
	p, err := r.Load(ctx, s.Use, plugins.Builtins()[s.Use], s)
	return e.wrapped(p, err, s.Wrap)
}

// nativeError is the error of Parts.Load and Parts.Plugin for a native plugin that cannot be used.
func nativeError(err error) error {
	var bad *spawn.Error
	if !errors.As(err, &bad) {
		return err
	}
	return &table.Error{Code: bad.Code, Reason: bad.Reason, Help: bad.Help, Err: bad}
}

// pythonFor returns the Python that has the package rlhost: RLHOST_PYTHON where that is set, else the given one, else the first of
// .venv/bin/python and python3.
func pythonFor(given string) string {
	if python := cmp.Or(os.Getenv("RLHOST_PYTHON"), given); python != "" {
		return python
	}
	if local, err := filepath.Abs(".venv/bin/python"); err == nil {
		if _, err := os.Stat(local); err == nil {
			return local
		}
	}
	return "python3"
}

// envPlugins returns the native plugins for environments that need no [plugin] table: Gymnasium and PettingZoo, by the Python
// package rlhost.
func envPlugins(python string) map[string]graph.PluginTable {
	python = pythonFor(python)
	tables := map[string]graph.PluginTable{}
	for _, name := range []string{"gymnasium", "pettingzoo"} {
		t := graph.DefaultPlugin()
		t.Path, t.Args, t.PassEnv = python, []string{"-m", "rlhost." + name}, []string{"PYTHONPATH", "VIRTUAL_ENV"}
		tables[name] = t
	}
	return tables
}

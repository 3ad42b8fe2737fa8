package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/process"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// compilerCommand is the first argument by which this program calls itself to compile a module; see wasm.ServeCompiler.
const compilerCommand = "compile-module"

// engines run plugins: WebAssembly modules in this process, native programs in others. Each starts when it is needed.
type engines struct {
	log *slog.Logger

	mu      sync.Mutex
	modules *wasm.Runtime    // guarded by mu; nil until one is loaded
	native  *process.Runtime // guarded by mu; nil until one is asked
}

func newEngines(log *slog.Logger) *engines { return &engines{log: log} }

// wasm returns the engine for WebAssembly modules.
func (e *engines) wasm() (*wasm.Runtime, error) {
	return started(e, &e.modules, func() (*wasm.Runtime, error) {
		return wasm.New(wasm.Options{Log: e.log, Compiler: compilerCommand})
	})
}

// processes returns the engine for native programs.
func (e *engines) processes() (*process.Runtime, error) {
	return started(e, &e.native, func() (*process.Runtime, error) { return process.New(process.Options{Log: e.log}) })
}

// started returns an engine, which it starts the first time that works.
func started[T any](e *engines, engine **T, start func() (*T, error)) (*T, error) {
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
func (e *engines) Close() error {
	e.mu.Lock()
	modules, programs := e.modules, e.native
	e.mu.Unlock() // closing may take its time, and abandon must not wait for it
	var errs []error
	if modules != nil {
		errs = append(errs, modules.Close())
	}
	if programs != nil {
		errs = append(errs, programs.Close())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.modules, e.native = nil, nil
	return errors.Join(errs...)
}

// abandon removes what would outlive the program, which ends at once instead of calling Close.
func (e *engines) abandon() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.native != nil {
		e.native.Abandon()
	}
}

// plugin asks a native plugin for its kinds of components; see graph.Parts.
func (e *engines) plugin(t graph.PluginTable, dir string) (map[string]graph.Maker, error) {
	r, err := e.processes()
	if err != nil {
		return nil, err
	}
	program, err := programOf(t, dir)
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
			c, err := r.Component(ctx, program, k.Name)
			return c, nativeError(err)
		}
	}
	return kinds, nil
}

// programOf returns the program of a plugin's table; a table without a path is this program.
func programOf(t graph.PluginTable, dir string) (process.Program, error) {
	p := process.Program{
		Name: t.Name, Path: t.Path, Interpreter: t.Interpreter, Args: t.Args, SHA256: t.SHA256, Env: t.Env, Start: t.Start,
		Restarts: orNever(t.Restarts), Stall: orNever(t.Stall), Snapshot: orNever(t.Snapshot), Memory: t.Memory,
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
			return p, err // wraps exec.ErrNotFound, which tells the name
		}
		p.Path = found
	}
	return p, nil
}

// orNever turns 0, which in a file means never, into what means never in a Program.
func orNever[T int | time.Duration](v T) T {
	if v == 0 {
		return -1
	}
	return v
}

// load loads an environment: a built-in one, a module file, or one of a native plugin.
func (e *engines) load(ctx context.Context, name string, t graph.EnvTable, dir string) (env.Plugin, error) {
	use, _ := t.Locate(dir, builtinEnvs())
	source := native.EnvSource{
		Name: name, Use: use, Args: t.Args, Grants: t.Grants, Memory: uint64(t.Limits.Memory),
		StepNS: int64(t.Limits.Step), InitNS: int64(t.Limits.Init),
	}
	if t.Plugin == nil {
		source.CompileNS = int64(cmp.Or(t.Limits.Compile, wasm.DefaultCompile))
		source.CompileMemory = uint64(t.Limits.CompileMemory)
	}
	if !t.Isolated {
		p, err := e.loadModule(ctx, source)
		return p, moduleError(err)
	}
	r, err := e.processes()
	if err != nil {
		return nil, err
	}
	var table graph.PluginTable
	if t.Plugin != nil {
		table = *t.Plugin
	}
	program, err := programOf(table, dir)
	if err != nil {
		return nil, err
	}
	p, err := r.LoadEnv(ctx, program, process.EnvLoadOptions{Source: source, Workers: t.Workers})
	return p, nativeError(err)
}

// loadModule loads a built-in environment or a module file into this process.
func (e *engines) loadModule(ctx context.Context, s native.EnvSource) (env.Plugin, error) {
	r, err := e.wasm()
	if err != nil {
		return nil, err
	}
	return r.Load(ctx, s.Use, plugins.Builtins()[s.Use], wasm.Config{
		Name: s.Name, Args: s.Args, Grants: s.Grants,
		Memory: s.Memory, Step: time.Duration(s.StepNS), Init: time.Duration(s.InitNS),
		Compile: time.Duration(s.CompileNS), CompileMemory: s.CompileMemory,
	})
}

// moduleError is what Parts.Load returns for a module that cannot be used.
func moduleError(err error) error {
	var bad *wasm.LoadError
	if !errors.As(err, &bad) {
		return err
	}
	return &graph.LoadError{
		Code: bad.Code, Reason: fmt.Sprintf("%s %s", bad.Path, bad.Reason), Help: bad.Remedy, Err: bad,
	}
}

// nativeError is the same for a native plugin.
func nativeError(err error) error {
	var bad *process.Error
	if !errors.As(err, &bad) {
		return err
	}
	return &graph.LoadError{Code: bad.Code, Reason: bad.Reason, Help: bad.Help, Err: bad}
}

// envPlugins are the native plugins for environments that need no [plugin] table: Gymnasium, by the Python package
// rlhost in the Python that is found first of RLHOST_PYTHON, .venv/bin/python and python3.
func envPlugins() map[string]graph.PluginTable {
	python := os.Getenv(pythonKey)
	if python == "" {
		python = "python3"
		if local, err := filepath.Abs(".venv/bin/python"); err == nil {
			if _, err := os.Stat(local); err == nil {
				python = local
			}
		}
	}
	return envPluginsOf(python)
}

// pythonKey is the environment variable that names the Python of Gymnasium's environments.
const pythonKey = "RLHOST_PYTHON"

// envPluginsOf is envPlugins with a Python that is known.
func envPluginsOf(python string) map[string]graph.PluginTable {
	gymnasium := graph.DefaultPlugin()
	gymnasium.Path, gymnasium.Args, gymnasium.Env = python, []string{"-m", "rlhost.gymnasium"}, []string{"PYTHONPATH", "VIRTUAL_ENV"}
	return map[string]graph.PluginTable{"gymnasium": gymnasium}
}

// pythonOf returns the Python that a pipeline's environments of Gymnasium are played with, or nothing.
func pythonOf(g *graph.Graph) string {
	for _, e := range g.Envs {
		if t := e.Table.Plugin; t != nil && g.Plugin(t.Name) == nil {
			return t.Path
		}
	}
	return ""
}

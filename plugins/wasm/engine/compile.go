package engine

import (
	"context"
	"errors"
	"os"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// Job is one module to compile.
type Job struct {
	Path   string     // for messages
	File   []byte     // the module's file
	Code   []byte     // the metered module
	Limits env.Source // on compiling and on the first run
}

// LimitError is why a module was not compiled although it may be valid: its compiler reached a limit, or was killed.
type LimitError struct{ Reason, Help string }

// Error returns the reason.
func (e LimitError) Error() string { return e.Reason }

// Compile makes code that can run, using the cache and another process where available. An error is about the module, and a LimitError
// if it may be valid, unless ctx has ended or the Engine is closed.
func (e *Engine) Compile(ctx context.Context, j *Job) (*Code, error) {
	if err := e.users.Enter(); err != nil {
		return nil, err
	}
	s, compiled, err := e.compile(ctx, j)
	if err != nil {
		return nil, errors.Join(err, e.users.Leave())
	}
	return &Code{sandbox: s, compiled: compiled, ctx: e.ctx, leave: e.users.Leave}, nil
}

func (e *Engine) compile(ctx context.Context, j *Job) (*sandbox, wazero.CompiledModule, error) {
	name := ""
	if e.cache != nil {
		name = e.cache.Name(e.coded.hand.compilerName(), j.Code)
		code, err := e.cache.Find(name)
		if err == nil {
			return e.use(ctx, j.Code, code)
		}
		if !codecache.Missing(err) {
			e.log.Warn("compiled module not used, it is compiled again", "reason", err)
		}
	}
	if e.compiler == "" && e.cache == nil {
		return e.compileHere(ctx, j.Code)
	}
	code, err := e.produce(ctx, j)
	var lost errNotWritten
	if errors.As(err, &lost) { // it compiled, within its limits if any, so another attempt will too
		e.log.Warn("compile cache not used", "reason", lost)
		return e.compileHere(ctx, j.Code)
	}
	if err != nil {
		return nil, nil, err
	}
	e.keep(name, code)
	return e.use(ctx, j.Code, code)
}

// keep puts code into the cache if there is one.
func (e *Engine) keep(name string, code *codecache.Code) {
	if e.cache == nil {
		return
	}
	if err := e.cache.Keep(name, code); err != nil {
		e.log.Warn("compile cache not used", "reason", err)
	}
}

// use compiles a module from its code.
func (e *Engine) use(ctx context.Context, module []byte, code *codecache.Code) (*sandbox, wazero.CompiledModule, error) {
	if e.coded == nil {
		return e.compileHere(ctx, module)
	}
	compiled, err := e.coded.give(ctx, module, code)
	if err = errors.Join(err, code.Close()); err != nil {
		e.log.Warn("compile cache not used", "reason", err)
		return e.compileHere(ctx, module)
	}
	return e.coded, compiled, nil
}

// produce compiles a module into a file, in another process if available. It is errNotWritten if that stayed within its
// limits, but the file is missing.
func (e *Engine) produce(ctx context.Context, j *Job) (code *codecache.Code, err error) {
	parent := os.TempDir()
	if e.cache != nil {
		parent = e.cache.Path("")
	}
	folder, err := os.MkdirTemp(parent, codecache.TemporaryPrefix+"*")
	lost := err
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }() // sweep removes the rest
	}
	if e.compiler != "" {
		err = e.compileApart(ctx, j, folder)
	} else if lost == nil {
		var into *folderCompiler
		if into, err = openFolderCompiler(folder, e.imports); err == nil {
			_, err = into.compile(ctx, j.Code)
			err = errors.Join(err, into.close())
		}
	}
	if err != nil {
		return nil, err
	}
	if lost == nil {
		code, lost = writtenInto(folder)
	}
	if lost != nil {
		return nil, errNotWritten{words.OneLine(lost.Error())}
	}
	return code, nil
}

// compileHere compiles in this process, without files.
func (e *Engine) compileHere(ctx context.Context, module []byte) (*sandbox, wazero.CompiledModule, error) {
	s, err := e.plainSandbox()
	if err != nil {
		return nil, nil, err
	}
	compiled, err := s.wz.CompileModule(ctx, module)
	return s, compiled, err
}

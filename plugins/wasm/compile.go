package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// errCompiler is why a module was not compiled although it may be valid: its compiler reached a limit, or was killed.
type errCompiler struct{ reason, help string }

func (e errCompiler) Error() string { return e.reason }

// compile makes code that can run, using the cache and another process where available. An error is about the module,
// unless ctx has ended.
func (r *Runtime) compile(ctx context.Context, m *Module, source []byte) (*engine, wazero.CompiledModule, error) {
	name, module := "", m.metered.Code
	if r.cache != nil {
		name = r.cache.Name(r.coded.hand.compilerName(), module)
		code, err := r.cache.Find(name)
		if err == nil {
			return r.use(ctx, module, code)
		}
		if !codecache.Missing(err) {
			r.log.Warn("compiled module not used, it is compiled again", "reason", err)
		}
	}
	if r.compiler == "" && r.cache == nil {
		return r.compileHere(ctx, module)
	}
	code, err := r.produce(ctx, m, source)
	var lost errNotWritten
	if errors.As(err, &lost) { // it compiled, within its limits if any, so another attempt will too
		r.log.Warn("compile cache not used", "reason", lost)
		return r.compileHere(ctx, module)
	}
	if err != nil {
		return nil, nil, err
	}
	r.keep(name, code)
	return r.use(ctx, module, code)
}

// keep puts code into the cache if there is one.
func (r *Runtime) keep(name string, code *codecache.Code) {
	if r.cache == nil {
		return
	}
	if err := r.cache.Keep(name, code); err != nil {
		r.log.Warn("compile cache not used", "reason", err)
	}
}

// use compiles a module from its code.
func (r *Runtime) use(ctx context.Context, module []byte, code *codecache.Code) (*engine, wazero.CompiledModule, error) {
	if r.coded == nil {
		return r.compileHere(ctx, module)
	}
	compiled, err := r.coded.give(ctx, module, code)
	if err = errors.Join(err, code.Close()); err != nil {
		r.log.Warn("compile cache not used", "reason", err)
		return r.compileHere(ctx, module)
	}
	return r.coded, compiled, nil
}

// produce compiles a module into a file, in another process if available. It is errNotWritten if that stayed within its
// limits, but the file is missing.
func (r *Runtime) produce(ctx context.Context, m *Module, source []byte) (code *codecache.Code, err error) {
	parent := os.TempDir()
	if r.cache != nil {
		parent = r.cache.Path("")
	}
	folder, err := os.MkdirTemp(parent, codecache.TemporaryPrefix+"*")
	lost := err
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }() // sweep removes the rest
	}
	if r.compiler != "" {
		err = r.compileApart(ctx, m, source, folder)
	} else if lost == nil {
		var into *folderCompiler
		if into, err = openFolderCompiler(folder); err == nil {
			_, err = into.compile(ctx, m.metered.Code)
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
		return nil, errNotWritten{oneLine(lost.Error())}
	}
	return code, nil
}

// compileHere compiles in this process, without files.
func (r *Runtime) compileHere(ctx context.Context, module []byte) (*engine, wazero.CompiledModule, error) {
	e, err := r.plainEngine()
	if err != nil {
		return nil, nil, err
	}
	compiled, err := e.wz.CompileModule(ctx, module)
	return e, compiled, err
}

// refused says why the compiler rejected a module. It has seen the rewritten one, in which function indexes are
// one higher; the original is not shown to it, because it reserves memory by any number it reads.
func refused(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil || errors.Is(err, ErrClosed) {
		return err
	}
	var limit errCompiler
	if errors.As(err, &limit) {
		return &table.Error{Code: CodeFeature, Place: path, Reason: limit.reason, Help: limit.help, Err: err}
	}
	return &table.Error{Code: CodeFormat, Place: path, Reason: fmt.Sprintf("is not valid: %s", oneLine(err.Error())),
		Help: "build or copy the file again", Err: err}
}

package wasm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// engine is one wazero runtime with the host's functions in it.
type engine struct {
	wz    wazero.Runtime
	cache wazero.CompilationCache // nil if it compiles everything itself
	hand  *handover               // of code compiled before; nil if there is none
}

// debugInfo says whether code records where its instructions were; it must be the same for all users of a cache.
const debugInfo = true

// onlyName returns the name of the only entry of a folder.
func onlyName(dir string) (string, error) {
	list, err := os.ReadDir(dir)
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("%d files are in %s, not one", len(list), dir)
	}
	if err != nil {
		return "", err
	}
	return list[0].Name(), nil
}

// folderCompiler is an engine that writes compiled code into a folder.
type folderCompiler struct {
	*engine
	lost error // why there will be no code
}

// openFolderCompiler chooses an engine and opens a folder, which must be empty.
func openFolderCompiler(folder string) (*folderCompiler, error) {
	cache, lost := wazero.NewCompilationCacheWithDir(folder)
	if lost != nil {
		cache = nil
	}
	e, err := newEngine(cache, nil)
	return &folderCompiler{e, lost}, err
}

// compile compiles one module. It is errNotWritten if the module can be compiled, but there was no room for its code.
func (c *folderCompiler) compile(ctx context.Context, module []byte) (wazero.CompiledModule, error) {
	compiled, err := c.wz.CompileModule(ctx, module)
	lost := c.lost
	var file *fs.PathError
	if errors.As(err, &file) { // that is about the file, not the module
		lost, err = err, nil
	}
	if err == nil && lost != nil {
		err = errNotWritten{oneLine(lost.Error())}
	}
	return compiled, err
}

// writtenInto opens the code that a folderCompiler wrote into a folder. The interpreter writes none.
func writtenInto(folder string) (*codecache.Code, error) {
	inner, err := onlyName(folder)
	if err != nil {
		return nil, err
	}
	name, err := onlyName(filepath.Join(folder, inner))
	if err == nil && len(name) != codecache.NameBytes {
		err = fmt.Errorf("compiled code has the name %q", name)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(folder, inner, name))
	if err != nil {
		return nil, err
	}
	return &codecache.Code{Name: name, File: f}, nil
}

// newEngine picks the compiler where the CPU allows it, else the interpreter.
func newEngine(cache wazero.CompilationCache, h *handover) (*engine, error) {
	config := wazero.NewRuntimeConfig()
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	return startEngine(config, cache, h)
}

func startEngine(config wazero.RuntimeConfig, cache wazero.CompilationCache, h *handover) (*engine, error) {
	ctx := context.Background()
	e := &engine{wz: wazero.NewRuntimeWithConfig(ctx, config.WithDebugInfoEnabled(debugInfo)), cache: cache, hand: h}
	for _, m := range hostModules() {
		if err := m.instantiate(ctx, e.wz); err != nil {
			return nil, errors.Join(fmt.Errorf("host module %s: %w", m.name, err), e.close())
		}
	}
	return e, nil
}

func (e *engine) close() error {
	ctx := context.Background()
	err := e.wz.Close(ctx)
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	if e.hand != nil {
		err = errors.Join(err, e.hand.close())
	}
	return err
}

// errNotWritten is why code that was compiled could not be handed over.
type errNotWritten struct{ reason string }

func (e errNotWritten) Error() string { return e.reason }

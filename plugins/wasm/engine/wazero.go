package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
	"github.com/rlhost/rlhost/plugins/wasm/internal/words"
)

// sandbox is one wazero runtime with the host's functions in it.
type sandbox struct {
	wz    wazero.Runtime
	cache wazero.CompilationCache   // nil if it compiles everything itself
	hand  *handover                 // of code compiled before; nil if there is none
	more  func(module string) error // gives it a module of the host's functions that is there on demand
	mu    sync.Mutex                // of more
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

// folderCompiler is a sandbox that writes compiled code into a folder.
type folderCompiler struct {
	*sandbox
	lost error // why there will be no code
}

// openFolderCompiler chooses a compiler and opens a folder, which must be empty.
func openFolderCompiler(folder string, imports Imports) (*folderCompiler, error) {
	cache, lost := wazero.NewCompilationCacheWithDir(folder)
	if lost != nil {
		cache = nil
	}
	s, err := newSandbox(wazero.NewRuntimeConfig(), imports, cache, nil)
	return &folderCompiler{s, lost}, err
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
		err = errNotWritten{words.OneLine(lost.Error())}
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

// newSandbox starts a wazero runtime, which picks the compiler where the CPU allows it, else the interpreter.
func newSandbox(config wazero.RuntimeConfig, imports Imports, cache wazero.CompilationCache, h *handover) (*sandbox, error) {
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	ctx := context.Background()
	s := &sandbox{wz: wazero.NewRuntimeWithConfig(ctx, config.WithDebugInfoEnabled(debugInfo)), cache: cache, hand: h}
	s.more = func(module string) error { return imports(ctx, s.wz, module) }
	if err := imports(ctx, s.wz); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// link gives the runtime those modules of the host's functions that a module imports from and that are there on demand.
func (s *sandbox) link(compiled wazero.CompiledModule) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range compiled.ImportedFunctions() {
		if module, _, _ := f.Import(); s.wz.Module(module) == nil {
			if err := s.more(module); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sandbox) close() error {
	ctx := context.Background()
	err := s.wz.Close(ctx)
	if s.cache != nil {
		err = errors.Join(err, s.cache.Close(ctx))
	}
	if s.hand != nil {
		err = errors.Join(err, s.hand.close())
	}
	return err
}

// errNotWritten is why code that was compiled could not be handed over.
type errNotWritten struct{ reason string }

func (e errNotWritten) Error() string { return e.reason }

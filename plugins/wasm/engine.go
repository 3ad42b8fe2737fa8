package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tetratelabs/wazero"
)

// engine is one wazero runtime with the host's functions in it.
type engine struct {
	wz    wazero.Runtime
	cache wazero.CompilationCache // nil if compiled code is not kept
}

// openCache returns the cache of compiled code in dir, or why there is none.
func openCache(dir string) (wazero.CompilationCache, error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(user, "rlhost")
	}
	cache, err := wazero.NewCompilationCacheWithDir(dir)
	if err != nil {
		return nil, err
	}
	if err := tryWrite(dir); err != nil {
		return nil, errors.Join(err, cache.Close(context.Background()))
	}
	return cache, nil
}

// tryWrite finds out now what would otherwise fail every compilation.
func tryWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// newEngine picks the compiler where the CPU allows it, else the interpreter.
func newEngine(cache wazero.CompilationCache) (*engine, error) {
	config := wazero.NewRuntimeConfig()
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	return startEngine(config, cache)
}

func startEngine(config wazero.RuntimeConfig, cache wazero.CompilationCache) (*engine, error) {
	ctx := context.Background()
	e := &engine{wz: wazero.NewRuntimeWithConfig(ctx, config.WithDebugInfoEnabled(true)), cache: cache}
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
	return err
}

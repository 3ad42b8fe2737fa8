package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
)

// ErrClosed is returned by calls on a Runtime, a Plugin or an Env after its Close.
var ErrClosed = errors.New("wasm runtime closed")

// Options configure a Runtime. The zero value works.
type Options struct {
	// CacheDir holds compiled code; it must be writable by its owner alone, because what lies there is run.
	// Empty means rlhost in the user's cache folder; the version of the compiler is part of the names within.
	CacheDir string
	// Log receives what guests write and what the runtime has to say; nil discards it.
	Log *slog.Logger
}

// Runtime compiles and runs modules. One is enough for a process. Its methods may be called concurrently.
type Runtime struct {
	log    *slog.Logger
	cancel context.CancelFunc
	// ctx ends when Close is called; running guests notice at their next metering point.
	ctx context.Context

	epoch time.Time
	main  *engine // keeps compiled code on disk if it can

	mu      sync.Mutex
	spare   *engine // never does; made when it is needed
	plugins int     // plugins that are not closed
	closed  bool
	shut    bool
}

// New makes a Runtime. A cache folder that cannot be used costs compile time at every start and is logged, it is
// not an error.
func New(o Options) (*Runtime, error) {
	r := &Runtime{log: o.Log, epoch: time.Now()}
	if r.log == nil {
		r.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	cache, err := openCache(o.CacheDir)
	if err != nil {
		r.log.Warn("compiled modules are not kept: every start compiles them again", "reason", err,
			"help", "make that folder writable, or set XDG_CACHE_HOME to one that is")
	}
	if r.main, err = newEngine(cache); err != nil {
		r.cancel()
		return nil, fmt.Errorf("start WebAssembly engine: %w", err)
	}
	return r, nil
}

// Close stops guest calls that are running and forbids new plugins. The memory of the runtime goes with the last
// plugin that is closed.
func (r *Runtime) Close() error {
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.shutIfIdle()
}

// enter counts a plugin in, leave counts it out.
func (r *Runtime) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.plugins++
	return nil
}

func (r *Runtime) leave() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plugins--
	return r.shutIfIdle()
}

// shutIfIdle frees the engines once nothing can run in them: compiled code must outlive every call.
func (r *Runtime) shutIfIdle() error {
	if !r.closed || r.plugins > 0 || r.shut {
		return nil
	}
	r.shut = true
	err := r.main.close()
	if r.spare != nil {
		err = errors.Join(err, r.spare.close())
	}
	return err
}

// compile compiles code, with the help of the cache where that works. An error is about the code.
func (r *Runtime) compile(ctx context.Context, code []byte) (*engine, wazero.CompiledModule, error) {
	compiled, err := r.main.wz.CompileModule(ctx, code)
	if err == nil || r.main.cache == nil {
		return r.main, compiled, err
	}
	// A damaged or full cache fails like a bad module does; only another attempt without it tells them apart.
	spare, spareErr := r.withoutCache()
	if spareErr != nil {
		return nil, nil, err
	}
	compiled, spareErr = spare.wz.CompileModule(ctx, code)
	if spareErr == nil {
		r.log.Warn("compile cache not used", "reason", err)
	}
	return spare, compiled, spareErr
}

func (r *Runtime) withoutCache() (*engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spare == nil {
		e, err := newEngine(nil)
		if err != nil {
			return nil, err
		}
		r.spare = e
	}
	return r.spare, nil
}

package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// ErrClosed is returned by calls on an Engine, and on its products, after its Close.
var ErrClosed = errors.New("wasm runtime closed")

// Imports gives a wazero runtime the host's functions, before any module is compiled, and later the modules of them that a guest names
// besides, if there are such.
type Imports func(ctx context.Context, wz wazero.Runtime, besides ...string) error

// Options configure an Engine.
type Options struct {
	// CacheDir is the folder with the folder "compiled" for compiled code, which is made for this user alone, because
	// its content is run. Empty means rlhost in the user's cache folder; the version of the compiler is part of the
	// names within.
	CacheDir string
	// Compiler is the first argument that makes this program call Serve. Modules are then compiled, and started for the
	// first time, by separate processes, within the limits on compiling of their source. Empty means within this
	// process, without limits.
	Compiler string
	// Config, if not nil, says how modules are compiled or interpreted. No code is kept then.
	Config  wazero.RuntimeConfig
	Imports Imports
	Log     *slog.Logger
}

// Engine compiles modules. Its methods may be called concurrently.
type Engine struct {
	log     *slog.Logger
	imports Imports
	cancel  context.CancelFunc
	ctx     context.Context

	compiler string
	config   wazero.RuntimeConfig
	cache    *codecache.Cache // nil if there is none
	coded    *sandbox         // takes code compiled before; nil if no code can be handed over, and cache is nil then too

	users Users // its Codes

	mu    sync.Mutex
	plain *sandbox // compiles by itself; made when it is needed
}

// New makes an Engine. An unusable cache folder costs compile time at every start and is logged; it is not an
// error.
func New(o Options) (*Engine, error) {
	e := &Engine{log: o.Log, imports: o.Imports, compiler: o.Compiler, config: o.Config}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.users.Free = e.free
	if o.Config == nil {
		e.config = wazero.NewRuntimeConfig()
		if err := e.openCache(o.CacheDir); err != nil {
			e.log.Warn("compiled modules are not kept: every start compiles them again", "reason", err,
				"help", "make that folder writable and yours alone, or set XDG_CACHE_HOME to one that is")
		}
	}
	if e.coded != nil {
		return e, nil
	}
	if _, err := e.plainSandbox(); err != nil {
		e.cancel()
		return nil, err
	}
	return e, nil
}

// openCache opens the cache, and a sandbox that can take code from it or from another process.
func (e *Engine) openCache(dir string) error {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		dir = filepath.Join(user, "rlhost")
	}
	cache, bad := codecache.Open(dir)
	given, hand, err := openHandover(cache)
	if err == nil {
		e.coded, err = newSandbox(e.config, e.imports, given, hand)
	}
	if bad == nil && err == nil {
		e.cache = cache
	} else if bad == nil {
		bad = errors.Join(err, cache.Close())
	}
	return bad
}

// Close ends the context of every Code and forbids new ones. The memory of the engine is freed when the last Code is closed.
func (e *Engine) Close() error {
	e.cancel()
	return e.users.Close()
}

// free runs when nothing can run in the sandboxes any more: compiled code must outlive every call.
func (e *Engine) free() error {
	var errs []error
	for _, s := range []*sandbox{e.coded, e.plain} {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	if e.cache != nil {
		errs = append(errs, e.cache.Close())
	}
	return errors.Join(errs...)
}

// plainSandbox returns the sandbox that compiles by itself.
func (e *Engine) plainSandbox() (*sandbox, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.plain != nil {
		return e.plain, nil
	}
	s, err := newSandbox(e.config, e.imports, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("start WebAssembly engine: %w", err)
	}
	e.plain = s
	return s, nil
}

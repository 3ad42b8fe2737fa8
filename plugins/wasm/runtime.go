package wasm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlhost/rlhost/plugins/wasm/internal/codecache"
)

// ErrClosed is returned by calls on a Runtime, a Plugin or an Env after its Close.
var ErrClosed = errors.New("wasm runtime closed")

// Options configure a Runtime. The zero value works.
type Options struct {
	// CacheDir is the folder with the folder "compiled" for compiled code, which is made for this user alone, because
	// its content is run. Empty means rlhost in the user's cache folder; the version of the compiler is part of the
	// names within.
	CacheDir string
	// Compiler is the first argument that makes this program call ServeCompiler. Modules are then compiled, and started
	// for the first time, by processes of their own, within the limits on compiling of their source. Empty means within
	// this process, without limits.
	Compiler string
	// MaxFileBytes limits the size of a module's file; 0 = DefaultMaxFileBytes.
	MaxFileBytes int64
	// Log receives the output of guests and the runtime's messages; nil discards them.
	Log *slog.Logger
	// Shown is how many lines of each module that is not granted log are logged nevertheless; how many it wrote is logged at its end.
	Shown int
}

// Runtime compiles and runs modules. One is enough for a process. Its methods may be called concurrently.
type Runtime struct {
	log    *slog.Logger
	cancel context.CancelFunc
	// ctx ends when Close is called; running guests notice at their next metering point.
	ctx context.Context

	epoch    time.Time
	compiler string
	maxFile  int64
	shown    int
	cache    *codecache.Cache // nil if there is none
	coded    *engine          // takes code compiled before; nil if no code can be handed over, and cache is nil then too

	users // its plugins

	mu    sync.Mutex
	plain *engine // compiles by itself; made when it is needed
}

// users counts what uses something that is freed when it has been closed and its last user has left.
type users struct {
	lock   sync.Mutex
	n      int
	closed bool
	freed  bool
	free   func() error // called once
}

// enter counts a user in, or returns ErrClosed. Each enter is followed by one leave.
func (u *users) enter() error {
	u.lock.Lock()
	defer u.lock.Unlock()
	if u.closed {
		return ErrClosed
	}
	u.n++
	return nil
}

func (u *users) leave() error {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.n--
	return u.freeIfIdle()
}

// close forbids new users. Closing again does nothing.
func (u *users) close() error {
	u.lock.Lock()
	defer u.lock.Unlock()
	u.closed = true
	return u.freeIfIdle()
}

func (u *users) freeIfIdle() error {
	if !u.closed || u.n > 0 || u.freed {
		return nil
	}
	u.freed = true
	return u.free()
}

// New makes a Runtime. An unusable cache folder costs compile time at every start and is logged; it is not an
// error.
func New(o Options) (*Runtime, error) {
	r := &Runtime{log: o.Log, epoch: time.Now(), compiler: o.Compiler, maxFile: cmp.Or(o.MaxFileBytes, DefaultMaxFileBytes), shown: o.Shown}
	if r.log == nil {
		r.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.free = r.freeEngines
	if err := r.openCache(o.CacheDir); err != nil {
		r.log.Warn("compiled modules are not kept: every start compiles them again", "reason", err,
			"help", "make that folder writable and yours alone, or set XDG_CACHE_HOME to one that is")
	}
	if r.coded != nil {
		return r, nil
	}
	if _, err := r.plainEngine(); err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

// openCache opens the cache, and an engine that can take code from it or from another process.
func (r *Runtime) openCache(dir string) error {
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
		r.coded, err = newEngine(given, hand)
	}
	if bad == nil && err == nil {
		r.cache = cache
	} else if bad == nil {
		bad = errors.Join(err, cache.Close())
	}
	return bad
}

// Close stops running guest calls and forbids new plugins. The memory of the runtime is freed when the last
// plugin is closed.
func (r *Runtime) Close() error {
	r.cancel()
	return r.users.close()
}

// freeEngines runs when nothing can run in the engines any more: compiled code must outlive every call.
func (r *Runtime) freeEngines() error {
	var errs []error
	for _, e := range []*engine{r.coded, r.plain} {
		if e != nil {
			errs = append(errs, e.close())
		}
	}
	if r.cache != nil {
		errs = append(errs, r.cache.Close())
	}
	return errors.Join(errs...)
}

// plainEngine returns the engine that compiles by itself.
func (r *Runtime) plainEngine() (*engine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.plain == nil {
		e, err := newEngine(nil, nil)
		if err != nil {
			return nil, fmt.Errorf("start WebAssembly engine: %w", err)
		}
		r.plain = e
	}
	return r.plain, nil
}

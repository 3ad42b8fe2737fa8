package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/hostabi/native"
)

// Options are the settings of a Runtime.
type Options struct {
	Log *slog.Logger // nil is silence
	// Dir is where the runtime makes its folder for sockets, which only this user can enter; empty means the user's
	// runtime folder, or the one for temporary files.
	Dir string
	// Grace is how long a component may take to stop before it is killed; 0 = DefaultGrace.
	Grace time.Duration
	// Cores lets processes that die leave core dumps, without the memory that they share with the host.
	Cores bool
}

// Runtime starts and supervises native plugins. Its methods may be called from any goroutine.
type Runtime struct {
	ground
	grace time.Duration
	log   *slog.Logger

	open   context.Context // ends with Close
	end    context.CancelCauseFunc
	starts sync.WaitGroup // of processes, under way
	waits  waits
	said   said

	mu         sync.Mutex            // guards what follows
	describers map[string]*describer // by a key that identifies programs
	running    map[*Process]struct{} // processes that are not closed
	closed     bool
}

// New returns a runtime with its own folder for sockets. It also removes the folders of runtimes whose processes are gone.
func New(o Options) (*Runtime, error) {
	r := &Runtime{
		ground: ground{cores: o.Cores}, grace: cmp.Or(max(o.Grace, 0), DefaultGrace), log: o.Log,
		describers: map[string]*describer{}, running: map[*Process]struct{}{},
	}
	r.open, r.end = context.WithCancelCause(context.Background())
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.dir, err = makeFolder(o.Dir); err != nil {
		return nil, err
	}
	// This process's own inherited files are not for plugins; Go's own files are closed on exec anyway.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return nil, errors.Join(fmt.Errorf("close files on exec: %w", err), os.RemoveAll(r.dir))
	}
	r.forker, r.groups = newForkers(), openGroups("/")
	return r, nil
}

// Close kills the processes that are left and removes the runtime's folder. Components must have been stopped.
func (r *Runtime) Close() error {
	r.mu.Lock()
	describers := r.describers
	closed := r.closed
	r.closed, r.describers = true, nil
	r.mu.Unlock()
	if closed {
		return nil
	}
	r.end(errClosed)
	r.starts.Wait()
	for _, d := range describers {
		d.mu.Lock()
		d.stop()
		d.mu.Unlock()
	}
	for _, p := range r.left() {
		p.Kill()
		<-p.Died()
	}
	r.forker.stop()
	r.groups.close()
	return os.RemoveAll(r.dir)
}

// Abandon removes the runtime's folder. It is for a program that ends at once, instead of Close: the processes end with
// it. It does not wait for anything but the file system.
func (r *Runtime) Abandon() { _ = os.RemoveAll(r.dir) } // a folder that stays goes when the next runtime is made

// enter notes a process that is about to be started. The caller calls starts.Done once it has.
func (r *Runtime) enter(p *Process) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	r.starts.Add(1)
	r.running[p] = struct{}{}
	return nil
}

// leave forgets a process that has been closed.
func (r *Runtime) leave(p *Process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p)
}

// left returns the processes that are not closed.
func (r *Runtime) left() []*Process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.running))
}

// Log is where a component's own log belongs.
func (r *Runtime) Log() *slog.Logger { return r.log }

// Grace is how long a component may take to stop before it is killed.
func (r *Runtime) Grace() time.Duration { return r.grace }

// Start runs a program until it answers and has described itself. It blocks for as long as Program.Start. The
// errors are *Error, or ctx's.
func (r *Runtime) Start(ctx context.Context, program Program, o StartOptions) (_ *Process, err error) {
	p := &Process{waits: &r.waits, component: o.Name, Program: program.WithDefaults(), log: o.Log, output: &output{log: o.Log, said: &r.said}}
	p.leave = func() { r.leave(p) }
	if err := r.enter(p); err != nil {
		return nil, err
	}
	defer r.starts.Done()
	defer func() {
		if err != nil {
			r.leave(p)
		}
	}()
	p.Took.Since = time.Now()
	ctx, closing := context.WithCancelCause(ctx)
	defer closing(nil)
	defer context.AfterFunc(r.open, func() { closing(errClosed) })()
	limited, cancel := context.WithTimeoutCause(ctx, p.Program.Start, ErrSlow)
	defer cancel()
	if err := p.open(limited, r.ground, o); err != nil {
		p.abandon()
		return nil, err
	}
	p.Wire.run(o.Handle, o.Broken)
	go p.watchWire(o.Broken)
	if err := p.describe(limited); err != nil {
		p.abandon()
		return nil, err
	}
	return p, nil
}

// Describe returns a program's description of itself: it is started, asked and stopped. The answer is kept for as
// long as the file stays the same.
func (r *Runtime) Describe(ctx context.Context, p Program) (native.Description, error) {
	d, err := r.describerOf(&p)
	if err != nil {
		return native.Description{}, err
	}
	return d.describe(ctx, p)
}

// CheckConfig asks a program whether a configuration is right.
func (r *Runtime) CheckConfig(ctx context.Context, p Program, c native.Configuration) (native.Configured, error) {
	d, err := r.describerOf(&p)
	if err != nil {
		return native.Configured{}, err
	}
	return d.check(ctx, p, c)
}

// describerOf returns the describer of a program as its file is now.
func (r *Runtime) describerOf(p *Program) (*describer, error) {
	info, err := os.Stat(p.Path)
	if err != nil {
		return nil, runError(p, p.Path, err)
	}
	key := fmt.Sprintf("%s\x00%d\x00%d\x00%s\x00%s\x00%s\x00%s\x00%s", p.Path, info.ModTime().UnixNano(), info.Size(), p.SHA256,
		strings.Join(p.Interpreter, "\x00"), strings.Join(p.Args, "\x00"), strings.Join(p.Env, "\x00"), p.Dir)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	d := r.describers[key]
	if d == nil {
		d = &describer{launch: func(ctx context.Context, p Program) (*Process, error) {
			return r.Start(ctx, p, StartOptions{
				Log:    r.log.With("plugin", p.Name),
				Handle: func(_ *native.Frame, files []*os.File) { _ = CloseFiles(files) },
				Broken: func(error) {},
			})
		}}
		r.describers[key] = d
	}
	return d, nil
}

var errClosed = errors.New("the runtime of native plugins is closed")

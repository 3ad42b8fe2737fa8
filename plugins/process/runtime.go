package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/arena"
)

// Options say what a Runtime is made with.
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
	options Options
	log     *slog.Logger
	dir     string // for sockets
	forker  *forker
	groups  *groups
	backoff backoff

	open   context.Context // ends with Close
	end    context.CancelCauseFunc
	starts sync.WaitGroup // of processes, under way

	mu      sync.Mutex        // guards what follows
	clerks  map[string]*clerk // by what tells programs apart
	hubs    map[*arena.Set]*hub
	proxies map[*proxy]struct{}   // that have been started
	running map[*process]struct{} // those that are not closed
	closed  bool
}

// New returns a runtime with a folder of its own for sockets. It also removes the folders of runtimes whose
// processes are gone.
func New(o Options) (*Runtime, error) {
	r := &Runtime{
		options: o, log: o.Log, backoff: defaultBackoff(), clerks: map[string]*clerk{}, hubs: map[*arena.Set]*hub{},
		proxies: map[*proxy]struct{}{}, running: map[*process]struct{}{},
	}
	r.open, r.end = context.WithCancelCause(context.Background())
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if r.dir, err = makeFolder(o.Dir); err != nil {
		return nil, err
	}
	// What this process inherited itself is not for plugins; Go's own files are closed on exec anyway.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return nil, errors.Join(fmt.Errorf("close files on exec: %w", err), os.RemoveAll(r.dir))
	}
	r.forker, r.groups = newForker(), openGroups("/")
	return r, nil
}

// Close kills the processes that are left and removes the runtime's folder. Components must have been stopped.
func (r *Runtime) Close() error {
	r.mu.Lock()
	clerks := r.clerks
	closed := r.closed
	r.closed, r.clerks = true, nil
	r.mu.Unlock()
	if closed {
		return nil
	}
	r.end(errClosed)
	r.starts.Wait()
	for _, c := range clerks {
		c.mu.Lock()
		c.dismiss()
		c.mu.Unlock()
	}
	for _, p := range r.left() {
		p.kill()
		<-p.died()
	}
	r.forker.stop()
	r.groups.close()
	return os.RemoveAll(r.dir)
}

// Abandon removes the runtime's folder. It is for a program that ends at once, instead of Close: the processes end with
// it. It does not wait for anything but the file system.
func (r *Runtime) Abandon() { _ = os.RemoveAll(r.dir) } // a folder that stays goes when the next runtime is made

// enter notes a process that is about to be started. The caller calls starts.Done once it has.
func (r *Runtime) enter(p *process) error {
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
func (r *Runtime) leave(p *process) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, p)
}

// left returns the processes that are not closed.
func (r *Runtime) left() []*process {
	r.mu.Lock()
	defer r.mu.Unlock()
	return keys(r.running)
}

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// CommandOptions say what is commanded. All but the last three are needed.
type CommandOptions struct {
	Pipeline *pipeline.Pipeline
	Run      *runs.Run // locked
	Parts    *graph.Parts
	Log      *slog.Logger
	// Text returns what pipeline.toml of the run's folder says of a graph: with paths relative to that folder.
	Text func(*graph.Graph) ([]byte, error)
	// Checkpoint saves one at the next dataset boundary and returns once it is saved.
	Checkpoint func(context.Context) (control.CheckpointReply, error)
	// Stop asks the run to end, at its next dataset boundary or at once. Ended is closed when it has, and LastCheckpoint
	// then tells what it ended with, or nil.
	Stop           func(now bool)
	LastCheckpoint func() *control.CheckpointReply

	StepsBefore uint64        // env steps that the run had made before this process
	Records     *runs.LogFile // the run's log, or nil
	Socket      string        // where to listen; empty is control.SocketPath of the run's folder
}

// Commands answers commands until Close.
type Commands struct {
	o       CommandOptions
	log     *slog.Logger
	started time.Time
	server  *control.Server
	ended   chan struct{}   // closed when the run has ended
	life    context.Context // until Close
	close   context.CancelFunc
	running sync.WaitGroup

	committing sync.Mutex // held while a change is made and written down

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced whenever what follows changes
	current   *work         // the change under way, or nil
	watched   *probation    // or nil
	number    uint64        // of the last change
	counts    control.SwapCounts
	names     map[string]string    // what a file was called, by its hash
	previous  map[string]*previous // by component
	fallen    map[string]string    // why a component runs its previous version again
	unwritten bool                 // pipeline.toml of the run's folder is behind what runs

	lastStep   string // of the events
	lastNumber uint64
	falls      chan fall
}

// work is a change under way.
type work struct {
	title  string
	stage  string
	cancel context.CancelCauseFunc
}

// Serve notes what runs, stores the modules of it in the run's folder, and listens. The run need not go on yet.
func Serve(o CommandOptions) (*Commands, error) {
	j := &Commands{
		o: o, log: cmp.Or(o.Log, slog.Default()), started: time.Now(), ended: make(chan struct{}),
		changed: make(chan struct{}), names: map[string]string{}, previous: map[string]*previous{},
		fallen: map[string]string{}, falls: make(chan fall, 64),
	}
	j.life, j.close = context.WithCancel(context.Background())
	if err := j.recall(); err != nil {
		return nil, err
	}
	j.mark()
	j.storeAll()
	socket := o.Socket
	if socket == "" {
		socket = control.SocketPath(o.Run.Dir)
	}
	server, err := control.Listen(socket, j.verbs(), j.log)
	if err != nil {
		return nil, err
	}
	j.server = server
	if err := o.Run.Update(func(i *runs.Info) { i.Socket = socket }); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	j.running.Go(j.watch)
	return j, nil
}

func (j *Commands) verbs() control.Verbs {
	v := control.Verbs{}
	control.On(v, control.VerbStatus, j.status)
	control.On(v, control.VerbSwap, j.swap)
	control.On(v, control.VerbRollback, j.rollback)
	control.On(v, control.VerbReload, j.reload)
	control.On(v, control.VerbScale, j.scale)
	control.On(v, control.VerbPause, j.pause)
	control.On(v, control.VerbResume, j.resume)
	control.On(v, control.VerbCheckpoint, j.checkpoint)
	control.On(v, control.VerbStop, j.stop)
	control.On(v, control.VerbTap, j.tap)
	control.On(v, control.VerbLogs, j.logs)
	return v
}

// End tells the server of commands that the run has ended: those who wait for that are answered, and nothing is changed any more. It
// returns once the run's folder says what the last change has come to.
func (j *Commands) End() {
	j.committing.Lock()
	defer j.committing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.ended:
	default:
		close(j.ended)
	}
}

// Close answers those who still ask, and gives the socket back. Call it after the pipeline's Run and before its Close.
func (j *Commands) Close() error {
	j.End()
	j.close()
	err := j.server.Close()
	j.running.Wait()
	j.settle(nil)
	return errors.Join(err, j.o.Run.Update(func(i *runs.Info) { i.Socket = "" }))
}

// tell wakes those who wait for something to change. j.mu is held.
func (j *Commands) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// begin makes a change the one that is under way; the second of two is told which one is. ctx ends also when the server
// gives the change up.
func (j *Commands) begin(ctx context.Context, title string) (context.Context, *work, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.over() {
		return nil, nil, control.Errorf(control.CodeEnded, "the run has ended")
	}
	if j.current != nil {
		e := control.Errorf(control.CodeBusy, "another change is under way: %s", j.current.text())
		e.Help = "wait for it: rlhost status --wait"
		return nil, nil, e
	}
	ctx, cancel := context.WithCancelCause(ctx)
	w := &work{title: title, cancel: cancel}
	j.current = w
	j.tell()
	return ctx, w, nil
}

// finish ends a change.
func (j *Commands) finish(w *work) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.cancel(nil)
	if j.current == w {
		j.current = nil
	}
	j.tell()
}

// beginBehind is begin that waits for the change under way to end.
func (j *Commands) beginBehind(ctx context.Context, title string) (context.Context, *work, error) {
	for {
		j.mu.Lock()
		changed := j.changed
		j.mu.Unlock()
		inner, w, err := j.begin(ctx, title)
		var e *control.Error
		if !errors.As(err, &e) || e.Code != control.CodeBusy {
			return inner, w, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// over reports whether the run has ended.
func (j *Commands) over() bool {
	select {
	case <-j.ended:
		return true
	default:
		return false
	}
}

// at notes how far a change is, for status and for the second of two.
func (j *Commands) at(w *work, format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.stage = fmt.Sprintf(format, args...)
}

func (w *work) text() string {
	if w.stage == "" {
		return w.title
	}
	return w.title + " (" + w.stage + ")"
}

// pid is that of the process that trains.
func pid() int { return os.Getpid() }

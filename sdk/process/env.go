package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// Errors of the calls about environments.
var (
	errNoEnvs  = errors.New("this plugin works no environments")
	errLoaded  = errors.New("an environment is loaded already")
	errNothing = errors.New("no environment is loaded")
	errMade    = errors.New("environments are made already")
	errNotMade = errors.New("no environments are made")
)

// textBytes is the room for the text of an error.
const textBytes = 1 << 10

// envs runs a batch of environments for the host: the control calls EnvLoad, EnvMake and EnvState, and the calls of the
// step path on the transport. Its methods may be called from any goroutine.
type envs struct {
	load func(context.Context, env.Source) (env.Plugin, error)
	host link.Transport
	send func(f native.Frame, files ...int) error
	log  *slog.Logger

	files  *inbox[announced] // from the wire
	states *inbox[*os.File]  // from the wire

	running sync.WaitGroup

	mu      sync.Mutex // everything below; held during every call of env
	plugin  env.Plugin
	env     env.Env
	batch   native.EnvBatch
	scratch native.EnvScratch
	memory  []byte // the scratch area, nil until it is announced
	spaces  map[uint64]*space
	metrics map[string]uint32
	seeds   []uint64
	calls   uint64 // of sent states
	stopped bool
	got     [1]hostabi.Message // the message to answer
	one     [1]hostabi.Message // the message to send
}

// space is a segment of blocks.
type space struct {
	seg    *shm.Segment
	schema *trajectory.Schema // of this worker's part of each block
}

func newEnvs(load func(context.Context, env.Source) (env.Plugin, error), host link.Transport,
	send func(native.Frame, ...int) error, log *slog.Logger) *envs {
	return &envs{load: load, host: host, send: send, log: log, files: newInbox[announced]("file"), states: newInbox[*os.File]("state"),
		spaces: map[uint64]*space{}, metrics: map[string]uint32{}}
}

// loadEnv loads the source and returns its description, or the errors of its keys.
func (w *envs) loadEnv(ctx context.Context, source env.Source) (native.EnvLoaded, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.load == nil:
		return native.EnvLoaded{}, errNoEnvs
	case w.plugin != nil || w.stopped:
		return native.EnvLoaded{}, errLoaded
	}
	plugin, err := w.load(ctx, source)
	var known *table.Error
	switch {
	case errors.As(err, &known) && known.Key != "":
		return native.EnvLoaded{Errors: configErrors(err)}, nil
	case err != nil:
		return native.EnvLoaded{}, err
	}
	w.plugin = plugin
	spec := plugin.Spec()
	return native.EnvLoaded{Spec: *native.EncodeSpec(&spec), Hash: plugin.Hash()}, nil
}

// makeEnvs makes the batch and starts serving the transport.
func (w *envs) makeEnvs(b native.EnvBatch) (native.EnvScratch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.plugin == nil || w.stopped:
		return native.EnvScratch{}, errNothing
	case w.env != nil:
		return native.EnvScratch{}, errMade
	case b.FirstColumn < 0 || b.Envs < 1 || b.FirstColumn > b.BlockEnvs || b.Envs > b.BlockEnvs-b.FirstColumn:
		return native.EnvScratch{}, fmt.Errorf("%d environments from column %d on, in rows of %d", b.Envs, b.FirstColumn, b.BlockEnvs)
	}
	made, err := w.plugin.NewEnv(env.Options{
		Name: b.Name, Envs: b.Envs, FirstEnv: b.FirstEnv, Autoreset: hostabi.Autoreset(b.Autoreset), Seed: uint64(b.Seed),
		Metric: w.metric,
	})
	if f := (*env.Fault)(nil); errors.As(err, &f) && f.Kind == env.FaultStatus {
		return native.EnvScratch{}, refuse(native.CodeOrder, "%v", f.Err)
	}
	if err != nil {
		return native.EnvScratch{}, err
	}
	w.env, w.batch = made, b
	const seedBytes, line = 8, 64
	mask := seedBytes * b.Envs
	text := (mask + b.Envs + line - 1) / line * line
	w.scratch = native.EnvScratch{SeedsAt: 0, MaskAt: mask, TextAt: text, Text: textBytes, Bytes: text + textBytes}
	w.running.Go(w.serve)
	return w.scratch, nil
}

// stop closes the environments. The ring to this process must be shut, now or soon.
func (w *envs) stop() error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.files.close()
	w.states.close()
	w.host.Nudge()
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	if w.env != nil {
		errs = append(errs, w.env.Close())
	}
	if w.plugin != nil {
		errs = append(errs, w.plugin.Close())
	}
	w.env, w.plugin = nil, nil
	return errors.Join(errs...)
}

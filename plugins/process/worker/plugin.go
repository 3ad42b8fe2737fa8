package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// ErrClosed is returned by an environment plugin that has been closed.
var ErrClosed = errors.New("environment plugin closed")

// Options say which environments a program works, and how.
type Options struct {
	Source env.Source
	// Workers is how many processes share each batch of environments; 0 means one. A batch of fewer environments has
	// as many processes as environments.
	Workers int
}

// plugin makes environments that live in processes. It implements env.Plugin.
type plugin struct {
	source  source
	workers int
	spec    hostabi.EnvSpec
	hash    string
	alone   bool // environments can be stepped one by one

	mu     sync.Mutex
	spares []*worker // have loaded the source, for the next batches
	reuse  int       // how many spares there may be of batches that are closed
	closed bool
}

// Load starts a process of the program, has it load an environment, and returns a plugin that makes batches of it:
// each in its own processes, which write into the bound blocks. It blocks until the process has described the
// environment. The error is an *Error, a table.Error for each wrong key of the source, or ctx's.
//
// A process that dies costs its environments the step that they are in: Bind, Reset or Step returns a Fault of kind Lost,
// by when another process has replaced it. A process that exceeds the limit on a step is killed: a Fault of kind Deadline.
func Load(ctx context.Context, r *spawn.Runtime, program spawn.Program, o Options) (env.Plugin, error) {
	p := &plugin{source: source{o.Source, r, program}, workers: max(o.Workers, 1)}
	w, loaded, err := p.load(ctx, o.Source.Name)
	if err != nil {
		return nil, err
	}
	if p.spec, err = loaded.Spec.Decode(); err != nil {
		return nil, errors.Join(p.specError(err), w.end())
	}
	p.hash, p.alone, p.spares = loaded.Hash, loaded.Alone, []*worker{w}
	return p, nil
}

// specError explains why a description is not accepted.
func (p *plugin) specError(err error) *spawn.Error {
	e := &spawn.Error{Code: codeDescription, Program: p.source.program.Name, Err: err,
		Reason: fmt.Sprintf("environment %q: %v", p.source.Use, err), Help: "correct its description"}
	switch {
	case errors.Is(err, hostabi.ErrTooOld):
		e.Code, e.Help = codeFuture, fmt.Sprintf("update rlhost, or describe it for ABI %v", hostabi.EnvABI)
	case errors.Is(err, hostabi.ErrNotYet):
		e.Help = "wrap it in one that this host runs: " + hostabi.Runs
	}
	return e
}

// codeDescription is the code of a description that is not accepted, whatever runtime the environment has.
const codeDescription = "E018"

// codeFuture is the code of a description that this rlhost is too old for.
const codeFuture = "E050"

// load starts a process and has it load the source.
func (p *plugin) load(ctx context.Context, name string) (*worker, *native.EnvLoaded, error) {
	w, err := p.source.startWorker(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, w.p.Program.Start+p.source.loading(), spawn.ErrSlow)
	defer cancel()
	var loaded native.EnvLoaded
	if err := w.p.Call(ctx, native.MethodEnvLoad, p.source.Source, &loaded); err != nil {
		return nil, nil, errors.Join(withCode(err), w.end())
	}
	if err := spawn.KeyErrors(loaded.Errors); err != nil {
		return nil, nil, errors.Join(err, w.end())
	}
	if err := p.knowsThreads(&loaded); err != nil {
		return nil, nil, errors.Join(err, w.end())
	}
	w.again = loaded.Again
	return w, &loaded, nil
}

// knowsThreads returns an error for the key threads of the source where the program takes no notice of it.
func (p *plugin) knowsThreads(loaded *native.EnvLoaded) error {
	if p.source.Threads <= 1 || loaded.Threads > 0 {
		return nil
	}
	return spawn.KeyErrors([]native.ConfigError{{
		Key: "threads", Help: "leave it out, and give `workers` more processes instead",
		Reason: fmt.Sprintf("is %d, but %s steps its environments one after the other", p.source.Threads, p.source.program.Name),
	}})
}

// withCode gives an error the code that the plugin's own words begin with, if they do.
func withCode(err error) error {
	var e *spawn.Error
	if !errors.As(err, &e) || len(e.Reason) < 6 || e.Reason[0] != 'E' || e.Reason[4] != ' ' {
		return err
	}
	for _, digit := range e.Reason[1:4] {
		if digit < '0' || digit > '9' {
			return err
		}
	}
	coded := *e
	coded.Code, coded.Reason = e.Reason[:4], e.Reason[5:]
	return &coded
}

// again is load for a process that must be like the first one.
func (p *plugin) again(ctx context.Context, name string) (*worker, error) {
	w, loaded, err := p.load(ctx, name)
	if err != nil {
		return nil, err
	}
	spec, err := loaded.Spec.Decode()
	if err == nil && (loaded.Hash != p.hash || !bytes.Equal(spec.Describe(), p.spec.Describe())) {
		err = &spawn.Error{Code: spawn.CodeProtocol, Program: p.source.program.Name,
			Reason: fmt.Sprintf("environment %q is not what it was when it was loaded first", p.source.Use),
			Help:   "do not change its files while it runs"}
	}
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// worker returns a process that has loaded the source: the spare one, or a new one.
func (p *plugin) worker(ctx context.Context, name string) (*worker, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", env.ErrUnsupported, ErrClosed)
	}
	spares := p.spares
	p.spares = nil
	p.mu.Unlock()
	var found *worker
	for _, w := range spares {
		switch {
		case w.gone.Load():
			_ = w.end() // it died while it had nothing to do
		case found == nil:
			found = w
		default:
			_ = p.keep(w) // its place is free
		}
	}
	if found == nil {
		return p.again(ctx, name)
	}
	found.name = name
	return found, nil
}

// Reuse keeps processes of batches that are closed; see env.Reusing.
func (p *plugin) Reuse(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reuse = n
}

// keep keeps a process that nobody calls for a later batch, if there is room for it, or ends it.
func (p *plugin) keep(w *worker) error {
	p.mu.Lock()
	kept := !p.closed && len(p.spares) < max(p.reuse, 1)
	if kept {
		p.spares = append(p.spares, w)
	}
	p.mu.Unlock()
	if kept {
		return nil
	}
	return w.end()
}

// release takes a process from a batch that is closed: it is kept, or ends.
func (p *plugin) release(w *worker) error {
	p.mu.Lock()
	reuse := p.reuse > 0
	p.mu.Unlock()
	if !reuse || !w.again || w.gone.Load() || w.verdict != answered || w.p.Transport.Len() > 0 {
		return w.end()
	}
	if err := w.leave(); err != nil {
		return errors.Join(err, w.end())
	}
	return p.keep(w)
}

// Spec returns the environment's description of itself.
func (p *plugin) Spec() hostabi.EnvSpec { return p.spec }

// StepsWhole says how parts are stepped instead; see env.Whole.
func (p *plugin) StepsWhole() string {
	if p.source.Runtime == env.InProcess {
		return `leave runtime = "process" out`
	}
	return "do it within the environment, in Gymnasium by gym_wrap, such as [\"rlhost.gymnasium.atari:FrameSkip\"]: a program steps all of its environments at once"
}

// Hash returns the SHA-256 of the source.
func (p *plugin) Hash() string { return p.hash }

// Configuration returns the arguments, as a module in this process has them; see env.Configured.
func (p *plugin) Configuration() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(p.source.Args)) {
		fmt.Fprintf(&b, "%s=%s\n", key, p.source.Args[key])
	}
	return b.String()
}

// Close ends the processes that wait for a batch. Processes of batches end with these.
func (p *plugin) Close() error {
	p.mu.Lock()
	spares := p.spares
	p.spares, p.closed = nil, true
	p.mu.Unlock()
	var errs []error
	for _, w := range spares {
		errs = append(errs, w.end())
	}
	return errors.Join(errs...)
}

package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// maxEnvFiles bounds how many segments one batch can have been bound to.
const maxEnvFiles = 256

// batch is a batch of environments in processes. It implements env.Env. The goroutine that calls it waits for
// the processes itself.
type batch struct {
	plugin  *plugin
	options env.Options
	gate    env.Gate
	workers []*worker
	files   []segment
	block   env.Block
	number  uint64 // of the block's file
	rows    int    // steps of the bound block, 0 if none is bound
	steps   uint64
	calls   uint64 // of states that were sent

	until  time.Time          // end of the time for the present call
	began  time.Time          // of the present step
	slow   int                // steps in a row that took long; see took
	waits  chan func()        // to the goroutine that waits for steps; nil until there is one
	waited chan time.Duration // it does not touch the rings any more, after so long
	waiter sync.WaitGroup

	alone *alone // nil until environments are to be stepped one by one
}

// segment identifies a segment, however often it is opened.
type segment struct {
	device, inode uint64
	size          int64
	schema        *trajectory.Schema
}

// startWorker returns a process that has made some of the batch's environments.
func (e *batch) startWorker(span env.Span) (*worker, error) {
	w, err := e.plugin.worker(e.wanted(), e.options.Name)
	if err != nil {
		return nil, err
	}
	if err := e.adopt(w, span); err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// wanted is the context of all waits; each has its own limit.
func (e *batch) wanted() context.Context {
	if e.options.Wanted == nil {
		return context.Background()
	}
	return e.options.Wanted
}

// adopt makes a process create some of the batch's environments. It is killed where they are abandoned.
func (e *batch) adopt(w *worker, span env.Span) error {
	w.needed = context.AfterFunc(e.wanted(), w.p.Kill)
	w.weigh(e.options.Stats)
	err := w.make(e.wanted(), e.options, e.options.Envs, span)
	if w.mail.broken() != nil && err != nil {
		return e.newFault(env.FaultMemory, hostabi.ExportCreate, -1, w.ending())
	}
	if f := (*env.Fault)(nil); err != nil && errors.As(w.refusal(err), &f) {
		return e.newFault(f.Kind, hostabi.ExportCreate, -1, f.Err)
	}
	return err
}

// stopWorkers gives all processes back.
func (e *batch) stopWorkers() error {
	errs := make([]error, len(e.workers))
	var all sync.WaitGroup
	for i, w := range e.workers {
		if w != nil {
			all.Go(func() { errs[i] = e.plugin.release(w) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

func (e *batch) bindMessage() hostabi.Message {
	return hostabi.Message{Slot: hostabi.LinkEnvBind, T: e.block.Index, Inline: [2]uint64{e.number, uint64(e.block.Offset)}}
}

// announce returns the number of the block's file, and sends it to the processes that do not know it.
func (e *batch) announce(b env.Block) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(b.FD, &stat); err != nil {
		return 0, fmt.Errorf("%w: %s: file of block %d: %w", env.ErrUnsupported, e.options.Name, b.Index, err)
	}
	file := segment{stat.Dev, stat.Ino, stat.Size, b.Schema}
	k := slices.Index(e.files, file)
	if k < 0 {
		if len(e.files) == maxEnvFiles {
			return 0, fmt.Errorf("%w: %s: more than %d segments", env.ErrUnsupported, e.options.Name, maxEnvFiles)
		}
		k = len(e.files)
		e.files = append(e.files, file)
	}
	number := uint64(k + 1) // 0 is the scratch area
	for _, w := range e.workers {
		if w.known[number] {
			continue
		}
		if err := w.announce(number, b, stat.Size); err != nil && !w.gone.Load() {
			return 0, err
		}
	}
	return number, nil
}

func (e *batch) selectAll() {
	for _, w := range e.workers {
		w.selected = true
	}
}

// post sends a message to the processes that are selected.
func (e *batch) post(m hostabi.Message) {
	e.until = time.Now().Add(e.plugin.source.step())
	for _, w := range e.workers {
		if w.selected {
			w.post(&m)
		}
	}
}

func (e *batch) newFault(kind env.FaultKind, call string, index int, err error) *env.Fault {
	return &env.Fault{Kind: kind, Name: e.options.Name, Source: e.plugin.source.Use, Call: call, Env: index,
		Step: e.steps, Err: err}
}

// find returns the process that an environment lives in and its index there.
func (e *batch) find(env int) (*worker, int) {
	for _, w := range e.workers {
		if env >= w.span.First && env-w.span.First < w.span.Count {
			return w, env - w.span.First
		}
	}
	return nil, 0
}

func (e *batch) noSuchEnv(index int) error {
	return fmt.Errorf("%w: %s: environment %d of %d", env.ErrUnsupported, e.options.Name, index, e.options.Envs)
}

package worker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// maxEnvFiles bounds how many segments one batch can have been bound to.
const maxEnvFiles = 256

// envBatch is a batch of environments in processes. It implements env.Env. The goroutine that calls it waits for
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

	until  time.Time     // end of the time for the present call
	slow   int           // steps in a row that took long, those that nobody timed included
	waits  chan func()   // to the goroutine that waits for steps; nil until there is one
	waited chan struct{} // it does not touch the rings any more
	waiter sync.WaitGroup
}

// envFile tells segments apart, however often they are opened.
type segment struct {
	device, inode uint64
	size          int64
	schema        *trajectory.Schema
}

var (
	_ env.Env     = (*batch)(nil)
	_ env.Stater  = (*batch)(nil)
	_ env.Starter = (*batch)(nil)
)

// NewEnv makes a batch of environments and returns when all its processes are ready. An error wraps
// env.ErrUnsupported, or is an *Error.
func (p *plugin) NewEnv(o env.Options) (env.Env, error) {
	n := min(p.workers, o.Envs)
	if err := o.Check(&p.spec, n); err != nil {
		return nil, err
	}
	e := &batch{
		plugin: p, options: o, workers: make([]*worker, n), gate: env.Gate{Name: o.Name, Closed: ErrClosed},
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			first, next := i*o.Envs/n, (i+1)*o.Envs/n
			e.workers[i], errs[i] = e.startWorker(env.Span{First: first, Count: next - first})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, e.stopWorkers())
	}
	return e, nil
}

// hire returns a process that has made some of the batch's environments.
func (e *batch) startWorker(span env.Span) (*worker, error) {
	ctx := context.Background() // every wait in here has a limit of its own
	w, err := e.plugin.worker(ctx, e.options.Name)
	if err != nil {
		return nil, err
	}
	if err := w.make(ctx, e.options, e.options.Envs, span); err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

// dismiss ends all processes.
func (e *batch) stopWorkers() error {
	errs := make([]error, len(e.workers))
	var all sync.WaitGroup
	for i, w := range e.workers {
		if w != nil {
			all.Go(func() { errs[i] = w.end() })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// Spec returns what the environment said of itself.
func (e *batch) Spec() *hostabi.EnvSpec { return &e.plugin.spec }

// Bind tells the processes of the block; see env.Env.
func (e *batch) Bind(b env.Block) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.options.CheckBlock(&e.plugin.spec, &b); err != nil {
		return err
	}
	if b.Schema.Part() {
		return fmt.Errorf("%w: %s: block %d has gaps, which other processes are not told of", env.ErrUnsupported, e.options.Name, b.Index)
	}
	number, err := e.announce(b)
	if err != nil {
		return err
	}
	e.block, e.number, e.rows = b, number, 0
	e.selectAll()
	err = e.exchange(hostabi.ExportBind, e.bindMessage())
	if err == nil || isLost(err) {
		e.rows = b.Schema.Shape.Steps
	}
	return err
}

func (e *batch) bindMessage() hostabi.Message {
	return hostabi.Message{Slot: hostabi.LinkEnvBind, T: e.block.Index, Inline: [2]uint64{e.number, uint64(e.block.Offset)}}
}

// announce returns the number of the block's file, and tells it to the processes that do not know it.
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

// announce sends a file.
func (w *worker) announce(number uint64, b env.Block, size int64) error {
	err := w.p.Wire.Send(native.Frame{File: &native.File{
		Number: number, Bytes: size, Schema: trajectory.EncodeSchema(b.Schema),
	}}, b.FD)
	if err != nil {
		return fmt.Errorf("%s: announce block %d: %w", w.name, b.Index, err)
	}
	w.known[number] = true
	return nil
}

// Reset starts new episodes; see env.Env.
func (e *batch) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.options.CheckReset(e.rows, t, mask, seeds); err != nil {
		return err
	}
	m := hostabi.Message{Slot: hostabi.LinkEnvReset, T: uint32(t)}
	if mask != nil {
		m.Kind |= hostabi.LinkEnvMask
	}
	if seeds != nil {
		m.Kind |= hostabi.LinkEnvSeeds
	}
	for _, w := range e.workers {
		w.selected = w.prepare(mask, seeds)
	}
	return e.exchange(hostabi.ExportReset, m)
}

// prepare writes masks and seeds to the scratch area and reports whether the reset concerns this process.
func (w *worker) prepare(mask []uint8, seeds []uint64) bool {
	first, next := w.span.First, w.span.First+w.span.Count
	area := w.scratch.Bytes()
	if mask != nil {
		if !slices.ContainsFunc(mask[first:next], func(m uint8) bool { return m != 0 }) {
			return false
		}
		copy(area[w.layout.MaskAt:], mask[first:next])
	}
	if seeds != nil {
		for i, seed := range seeds[first:next] {
			binary.LittleEndian.PutUint64(area[w.layout.SeedsAt+8*i:], seed)
		}
	}
	return true
}

// Step makes one step of every environment; see env.Env.
func (e *batch) Step(t int) error {
	if err := e.beginStep(t); err != nil {
		return err
	}
	defer e.gate.Leave()
	return e.collect(hostabi.ExportStep)
}

// beginStep takes the batch for a step and sends it to the processes.
func (e *batch) beginStep(t int) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	if err := e.options.CheckStep(e.rows, t); err != nil {
		e.gate.Leave()
		return err
	}
	e.steps++
	e.selectAll()
	e.post(hostabi.Message{Slot: hostabi.LinkEnvStep, T: uint32(t)})
	return nil
}

func (e *batch) selectAll() {
	for _, w := range e.workers {
		w.selected = true
	}
}

// exchange sends a message to the processes that are selected and waits for all their answers.
func (e *batch) exchange(call string, m hostabi.Message) error {
	e.post(m)
	return e.collect(call)
}

// post sends a message to the processes that are selected.
func (e *batch) post(m hostabi.Message) {
	e.until = time.Now().Add(e.plugin.step())
	for _, w := range e.workers {
		if w.selected {
			w.post(&m)
		}
	}
}

// collect waits for the answers to what was posted.
func (e *batch) collect(call string) error {
	ok := true
	for _, w := range e.workers {
		if w.selected {
			w.await(e.until)
			ok = ok && w.verdict == answered && w.reply.Kind == 0
		}
	}
	if ok {
		return nil
	}
	return e.judge(call)
}

// Close ends the processes.
func (e *batch) Close() error {
	first, err := e.gate.Shut()
	if !first {
		return err
	}
	if e.waits != nil {
		close(e.waits)
		e.waiter.Wait()
	}
	return e.stopWorkers()
}

package process

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/process/protocol"
	"github.com/rlhost/rlhost/sdk/process/schema"
)

// States of a batch.
const (
	envIdle uint32 = iota
	envRunning
	envPoisoned
	envClosed
)

// maxEnvFiles bounds how many segments one batch can have been bound to.
const maxEnvFiles = 256

// envBatch is a batch of environments in processes. It implements rollout.Env. The goroutine that calls it waits for
// the processes itself.
type envBatch struct {
	plugin  *envPlugin
	options rollout.EnvOptions
	state   atomic.Uint32 // changed by the caller's goroutine; atomic to catch a second one
	workers []*envWorker
	files   []envFile
	block   rollout.Block
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
type envFile struct {
	device, inode uint64
	size          int64
	schema        *rollout.Schema
}

var (
	_ rollout.Env        = (*envBatch)(nil)
	_ rollout.EnvStater  = (*envBatch)(nil)
	_ rollout.EnvStarter = (*envBatch)(nil)
)

// NewEnv makes a batch of environments and returns when all its processes are ready. An error wraps
// rollout.ErrUnsupported, or is an *Error.
func (p *envPlugin) NewEnv(o rollout.EnvOptions) (rollout.Env, error) {
	n := min(p.workers, o.Envs)
	if err := p.checkOptions(o, n); err != nil {
		return nil, err
	}
	e := &envBatch{plugin: p, options: o, workers: make([]*envWorker, n)}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			first, next := i*o.Envs/n, (i+1)*o.Envs/n
			e.workers[i], errs[i] = e.hire(rollout.Span{First: first, Count: next - first})
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, e.dismiss())
	}
	return e, nil
}

func (p *envPlugin) checkOptions(o rollout.EnvOptions, workers int) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", rollout.ErrUnsupported, fmt.Sprintf(format, args...))
	}
	const most = 1 << 20
	if o.Envs < 1 || o.Envs > most {
		return refuse("%d environments, want 1 to %d", o.Envs, most)
	}
	if each := (o.Envs + workers - 1) / workers; p.spec.MaxEnvs > 0 && each > p.spec.MaxEnvs {
		return refuse("%d environments in each process, %s takes 1 to %d", each, p.spec.Name, p.spec.MaxEnvs)
	}
	if o.Autoreset&p.spec.Autoreset == 0 || o.Autoreset&(o.Autoreset-1) != 0 {
		return refuse("autoreset %v, %s offers modes %#x", o.Autoreset, p.spec.Name, uint32(p.spec.Autoreset))
	}
	return nil
}

// hire returns a process that has made some of the batch's environments.
func (e *envBatch) hire(span rollout.Span) (*envWorker, error) {
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
func (e *envBatch) dismiss() error {
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
func (e *envBatch) Spec() *rollout.EnvSpec { return &e.plugin.spec }

// enter takes the batch for one call. leave gives it back.
func (e *envBatch) enter() error {
	if e.state.CompareAndSwap(envIdle, envRunning) {
		return nil
	}
	switch e.state.Load() {
	case envPoisoned:
		return fmt.Errorf("%s: %w", e.options.Name, rollout.ErrPoisoned)
	case envClosed:
		return fmt.Errorf("%w: %s: %w", rollout.ErrUnsupported, e.options.Name, ErrClosed)
	}
	return fmt.Errorf("%w: %s is called during another call", rollout.ErrUnsupported, e.options.Name)
}

// seize is enter for a call that is allowed when the batch is poisoned.
func (e *envBatch) seize() error {
	if e.state.CompareAndSwap(envPoisoned, envRunning) {
		return nil
	}
	return e.enter()
}

func (e *envBatch) leave() { e.state.CompareAndSwap(envRunning, envIdle) }

func (e *envBatch) poison() { e.state.Store(envPoisoned) }

// Bind tells the processes of the block; see rollout.Env.
func (e *envBatch) Bind(b rollout.Block) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.checkBlock(b); err != nil {
		return err
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

func (e *envBatch) bindMessage() hostabi.Message {
	return hostabi.Message{Slot: hostabi.LinkEnvBind, T: e.block.Index, Inline: [2]uint64{e.number, uint64(e.block.Offset)}}
}

// checkBlock refuses blocks that the processes cannot step into.
func (e *envBatch) checkBlock(b rollout.Block) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: block %d %s", rollout.ErrUnsupported, e.options.Name, b.Index, fmt.Sprintf(format, args...))
	}
	switch s := b.Schema; {
	case s == nil:
		return refuse("has no schema")
	case b.FD < 0:
		return refuse("is ordinary memory, which no other process can see; take it from an arena")
	case s.Shape.Envs != e.options.Envs:
		return refuse("has room for %d environments, this batch has %d", s.Shape.Envs, e.options.Envs)
	case b.Offset < 0:
		return refuse("lies at offset %d", b.Offset)
	case !slices.Equal(s.Spec.Tensors, e.plugin.spec.Tensors):
		return refuse("is laid out for another environment (%s)", s.Spec.Name)
	}
	return nil
}

// announce returns the number of the block's file, and tells it to the processes that do not know it.
func (e *envBatch) announce(b rollout.Block) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(b.FD, &stat); err != nil {
		return 0, fmt.Errorf("%w: %s: file of block %d: %w", rollout.ErrUnsupported, e.options.Name, b.Index, err)
	}
	file := envFile{stat.Dev, stat.Ino, stat.Size, b.Schema}
	k := slices.Index(e.files, file)
	if k < 0 {
		if len(e.files) == maxEnvFiles {
			return 0, fmt.Errorf("%w: %s: more than %d segments", rollout.ErrUnsupported, e.options.Name, maxEnvFiles)
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
func (w *envWorker) announce(number uint64, b rollout.Block, size int64) error {
	err := w.p.wire.send(protocol.Frame{File: &protocol.File{
		Number: number, Bytes: size, Schema: schema.Encode(b.Schema),
	}}, b.FD)
	if err != nil {
		return fmt.Errorf("%s: announce block %d: %w", w.name, b.Index, err)
	}
	w.known[number] = true
	return nil
}

// Reset starts new episodes; see rollout.Env.
func (e *envBatch) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	n := e.options.Envs
	if e.rows == 0 || t < 0 || t > e.rows || mask != nil && len(mask) != n || seeds != nil && len(seeds) != n {
		return fmt.Errorf("%w: %s: reset at row %d of %d with %d masks and %d seeds for %d environments",
			rollout.ErrUnsupported, e.options.Name, t, e.rows, len(mask), len(seeds), n)
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
func (w *envWorker) prepare(mask []uint8, seeds []uint64) bool {
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

// Step makes one step of every environment; see rollout.Env.
func (e *envBatch) Step(t int) error {
	if err := e.beginStep(t); err != nil {
		return err
	}
	defer e.leave()
	return e.collect(hostabi.ExportStep)
}

// beginStep takes the batch for a step and sends it to the processes.
func (e *envBatch) beginStep(t int) error {
	if err := e.enter(); err != nil {
		return err
	}
	if uint(t) >= uint(e.rows) {
		e.leave()
		return fmt.Errorf("%w: %s: step at row %d of %d", rollout.ErrUnsupported, e.options.Name, t, e.rows)
	}
	e.steps++
	e.selectAll()
	e.post(hostabi.Message{Slot: hostabi.LinkEnvStep, T: uint32(t)})
	return nil
}

func (e *envBatch) selectAll() {
	for _, w := range e.workers {
		w.selected = true
	}
}

// exchange sends a message to the processes that are selected and waits for all their answers.
func (e *envBatch) exchange(call string, m hostabi.Message) error {
	e.post(m)
	return e.collect(call)
}

// post sends a message to the processes that are selected.
func (e *envBatch) post(m hostabi.Message) {
	e.until = time.Now().Add(e.plugin.step())
	for _, w := range e.workers {
		if w.selected {
			w.post(&m)
		}
	}
}

// collect waits for the answers to what was posted.
func (e *envBatch) collect(call string) error {
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
func (e *envBatch) Close() error {
	if e.state.Load() == envClosed {
		return nil
	}
	if err := e.seize(); err != nil {
		return err
	}
	e.state.Store(envClosed)
	if e.waits != nil {
		close(e.waits)
		e.waiter.Wait()
	}
	return e.dismiss()
}

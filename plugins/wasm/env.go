package wasm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/hostabi"
)

// lastWords is how long a guest may take to say what went wrong.
const lastWords = 200 * time.Millisecond

// States of an Env.
const (
	idle uint32 = iota
	running
	poisoned
	closed
)

// Env is a batch of environments in one instance. It implements rollout.Env.
type Env struct {
	plugin  *Plugin
	options rollout.EnvOptions
	state   atomic.Uint32 // changed by the caller's goroutine; atomic to catch a second one
	inst    *instance
	batch   uint64 // what rl_create returned
	rows    int    // steps of the bound block, 0 if none is bound
	windows []*window
	scratch uint32 // guest memory for seeds and masks
	initial *delta // state just after rl_create, nil if it cannot be captured
	pace    pace
}

var _ rollout.Env = (*Env)(nil)

// NewEnv makes a batch of environments. An error is a *rollout.Fault, or wraps rollout.ErrUnsupported or ErrClosed.
// The first batch of a plugin costs what every other does: all are forked from the image that Load took.
func (p *Plugin) NewEnv(o rollout.EnvOptions) (rollout.Env, error) {
	if err := p.checkOptions(o); err != nil {
		return nil, err
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	e := &Env{plugin: p, options: o}
	if err := e.start(); err != nil {
		if leaveErr := p.leave(); leaveErr != nil {
			return nil, errors.Join(err, leaveErr)
		}
		return nil, err
	}
	return e, nil
}

func (p *Plugin) checkOptions(o rollout.EnvOptions) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", rollout.ErrUnsupported, fmt.Sprintf(format, args...))
	}
	const most = 1 << 20
	if o.Envs < 1 || o.Envs > most || p.spec.MaxEnvs > 0 && o.Envs > p.spec.MaxEnvs {
		limit := most
		if p.spec.MaxEnvs > 0 {
			limit = min(limit, p.spec.MaxEnvs)
		}
		return refuse("%d environments, %s takes 1 to %d", o.Envs, p.spec.Name, limit)
	}
	if o.Autoreset&p.spec.Autoreset == 0 || o.Autoreset&(o.Autoreset-1) != 0 {
		return refuse("autoreset %v, %s offers modes %#x", o.Autoreset, p.spec.Name, uint32(p.spec.Autoreset))
	}
	return nil
}

// start makes the environments in a new instance. If that fails the old instance, if there is one, stays.
func (e *Env) start() error {
	i, err := e.plugin.begin()
	if err != nil {
		return e.fault(err)
	}
	old := e.inst
	e.adopt(i)
	i.host.entropy = e.options.Seed
	if err := e.create(); err != nil {
		err = e.fault(err)
		i.close()
		e.inst = old
		return err
	}
	if old != nil {
		old.close()
	}
	if e.plugin.image != nil {
		e.initial = &delta{state: i.state(), pages: changedPages(i.mem.bytes(), e.plugin.image.content, nil)}
	}
	return nil
}

// adopt makes an instance speak for this Env.
func (e *Env) adopt(i *instance) {
	i.host.name, i.host.metric = e.options.Name, e.options.Metric
	e.inst = i
}

// create calls rl_create and gets the memory for seeds and masks.
func (e *Env) create() error {
	i := e.inst
	n, err := i.invokeExport(hostabi.ExportCreate, e.plugin.config.Init,
		uint64(i.argsPtr), uint64(len(e.plugin.args)), uint64(e.options.Envs), uint64(e.options.Autoreset))
	if err != nil {
		return err
	}
	if n < 0 {
		return &callError{rollout.FaultStatus, hostabi.ExportCreate, i.words(hostabi.Status(n))}
	}
	e.batch = uint64(n)
	if e.scratch, err = i.allocate(e.scratchBytes(), 64); err != nil {
		return err
	}
	if overlap(e.scratch, e.scratchBytes(), i.errorPtr, errorBytes) {
		return badMemory(e.scratch, e.scratchBytes(), "memory that it gave to the host before")
	}
	return nil
}

// scratchBytes is the room for a seed and a mask byte for each environment.
func (e *Env) scratchBytes() uint32 { return uint32(e.options.Envs) * 9 }

// Spec returns what the environment said of itself.
func (e *Env) Spec() *rollout.EnvSpec { return &e.plugin.spec }

// FuelUsed returns how much the guest has burned since it was made or renewed, in about the time of a simple
// instruction. It depends on what the guest did and on nothing else, so equal runs burn equal fuel. It must not
// be called during another call.
func (e *Env) FuelUsed() uint64 { return e.inst.fuel.used() }

// enter takes the Env for one call. leave gives it back.
func (e *Env) enter() error {
	if e.state.CompareAndSwap(idle, running) {
		return nil
	}
	switch e.state.Load() {
	case poisoned:
		return fmt.Errorf("%s: %w", e.options.Name, rollout.ErrPoisoned)
	case closed:
		return fmt.Errorf("%w: %s: %w", rollout.ErrUnsupported, e.options.Name, ErrClosed)
	}
	return fmt.Errorf("%w: %s is called during another call", rollout.ErrUnsupported, e.options.Name)
}

func (e *Env) leave() { e.state.CompareAndSwap(running, idle) }

// Bind maps the block's guest region into the guest, the first time, and points the guest at it.
func (e *Env) Bind(b rollout.Block) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if err := e.checkBlock(b); err != nil {
		return err
	}
	e.rows = 0 // until the guest has agreed
	w, err := e.window(b)
	if err != nil {
		return e.fault(err)
	}
	i := e.inst
	n, err := i.invoke(hostabi.ExportBind, i.call.bind, e.plugin.config.Step,
		e.batch, uint64(w.bindings), uint64(len(e.plugin.spec.Tensors)))
	if err != nil {
		return e.fault(err)
	}
	if n < 0 {
		return e.statusFault(n)
	}
	e.rows = b.Schema.Shape.Steps
	return nil
}

// checkBlock refuses blocks that this Env cannot step into.
func (e *Env) checkBlock(b rollout.Block) error {
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: block %d %s", rollout.ErrUnsupported, e.options.Name, b.Index, fmt.Sprintf(format, args...))
	}
	switch s := b.Schema; {
	case s == nil:
		return refuse("has no schema")
	case b.FD < 0:
		return refuse("is ordinary memory, which cannot be mapped into a guest; take it from an arena")
	case s.Shape.Envs != e.options.Envs:
		return refuse("has room for %d environments, this batch has %d", s.Shape.Envs, e.options.Envs)
	case b.Offset < 0 || b.Offset%hostPage != 0 || s.GuestBytes <= 0 || s.GuestBytes%hostPage != 0:
		return refuse("is not made of whole pages: %d bytes at offset %d", s.GuestBytes, b.Offset)
	case !slices.Equal(s.Spec.Tensors, e.plugin.spec.Tensors):
		return refuse("is laid out for another environment (%s)", s.Spec.Name)
	}
	return nil
}

// Reset starts new episodes; see rollout.Env.
func (e *Env) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	n := e.options.Envs
	if e.rows == 0 || t < 0 || t > e.rows || mask != nil && len(mask) != n || seeds != nil && len(seeds) != n {
		return fmt.Errorf("%w: %s: reset at row %d of %d with %d masks and %d seeds for %d environments",
			rollout.ErrUnsupported, e.options.Name, t, e.rows, len(mask), len(seeds), n)
	}
	i := e.inst
	memory := i.view(e.scratch, e.scratchBytes())
	var seedsPtr, maskPtr uint32
	if seeds != nil {
		seedsPtr = e.scratch
		for k, seed := range seeds {
			binary.LittleEndian.PutUint64(memory[8*k:], seed)
		}
	}
	if mask != nil {
		maskPtr = e.scratch + uint32(8*n)
		copy(memory[8*n:], mask)
	}
	result, err := i.invoke(hostabi.ExportReset, i.call.reset, e.plugin.config.Step,
		e.batch, uint64(t), uint64(maskPtr), uint64(seedsPtr))
	if err != nil {
		return e.fault(err)
	}
	if result < 0 {
		return e.statusFault(result)
	}
	return nil
}

// Step makes one step of every environment; see rollout.Env.
func (e *Env) Step(t int) error {
	if !e.state.CompareAndSwap(idle, running) {
		return e.enter()
	}
	if uint(t) >= uint(e.rows) {
		e.leave()
		return fmt.Errorf("%w: %s: step at row %d of %d", rollout.ErrUnsupported, e.options.Name, t, e.rows)
	}
	i := e.inst
	i.host.steps++
	result, err := e.step(t)
	if err != nil || result < 0 {
		defer e.leave()
		if err != nil {
			return e.fault(err)
		}
		return e.statusFault(result)
	}
	e.state.Store(idle)
	return nil
}

// Renew returns the Env to the state just after its creation.
func (e *Env) Renew() error {
	if err := e.seize(); err != nil {
		return err
	}
	defer e.leave()
	e.rows, e.windows, e.pace = 0, nil, pace{}
	var err error
	if e.initial == nil {
		err = e.start()
	} else {
		err = e.replace(e.plugin.image, e.initial)
	}
	if err != nil {
		err = e.fault(err)
		e.state.Store(poisoned)
	}
	return err
}

// seize takes the Env for a call that is allowed when it is poisoned.
func (e *Env) seize() error {
	if e.state.CompareAndSwap(poisoned, running) {
		return nil
	}
	return e.enter()
}

// replace puts the Env into a state, in a new instance where the present one has grown beyond it or is broken.
func (e *Env) replace(base *image, d *delta) error {
	if e.inst.mem.size > d.size || e.inst.mem.broken {
		i, err := e.plugin.newInstance()
		if err != nil {
			return err
		}
		e.inst.close()
		e.adopt(i)
	}
	return e.inst.restoreDelta(base, d)
}

// Close frees the environments. It fails if another call is running.
func (e *Env) Close() error {
	if e.state.CompareAndSwap(closed, closed) {
		return nil
	}
	if err := e.seize(); err != nil {
		return err
	}
	e.state.Store(closed)
	e.inst.close()
	return e.plugin.leave()
}

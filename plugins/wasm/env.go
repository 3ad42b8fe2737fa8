package wasm

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/linear"
)

// Env is a batch of environments in one instance. It implements env.Env.
type Env struct {
	options env.Options
	gate    env.Gate
	rows    int     // steps of the bound block, 0 if none is bound
	bound   *window // of that block
	life
}

// life is an instance and its parts.
type life struct {
	plugin  *Plugin
	inst    *guest.Instance
	batch   uint64 // as rl_create returned it
	windows []*window
	scratch uint32       // guest memory for seeds and masks
	initial *guest.Saved // state just after rl_create, nil if it cannot be captured
	pace    pace
	probe   probe
}

var _ env.Env = (*Env)(nil)

// NewEnv makes a batch of environments. An error is a *env.Fault, or wraps env.ErrUnsupported or engine.ErrClosed.
// The first batch of a plugin costs as much as any other: all are forked from the image that Load took.
func (p *Plugin) NewEnv(o env.Options) (env.Env, error) {
	if err := o.Check(&p.spec, 1); err != nil {
		return nil, err
	}
	if err := p.module.Enter(); err != nil {
		return nil, err
	}
	e := &Env{options: o, gate: env.Gate{Name: o.Name, Closed: engine.ErrClosed}, life: life{plugin: p}}
	if err := e.start(); err != nil {
		if leaveErr := p.module.Leave(); leaveErr != nil {
			return nil, errors.Join(err, leaveErr)
		}
		return nil, err
	}
	return e, nil
}

// start makes the environments in a new instance. On an error the old instance, if any, stays.
func (e *Env) start() error {
	old := e.inst
	i, err := e.plugin.newInstance()
	if err == nil {
		e.adopt(i)
		i.SeedStreams(streams(&e.options)...)
		err = e.create()
	}
	if err != nil {
		err = e.fault(err)
		if i != nil {
			i.Close()
		}
		e.inst = old
		return err
	}
	if old != nil {
		old.Close()
	}
	e.initial = i.Save(nil, nil)
	return nil
}

// streams returns the seeds of a batch's random streams: of each environment, and last of calls that are about none.
func streams(o *env.Options) []uint64 {
	seeds := make([]uint64, o.Envs+1)
	for k := range o.Envs {
		seeds[k] = env.Seed(o.Seed, o.FirstEnv+k)
	}
	seeds[o.Envs] = o.Seed
	return seeds
}

// adopt makes an instance this Env's own.
func (e *Env) adopt(i *guest.Instance) {
	o := guest.Owner{Name: e.options.Name, Metric: e.options.Metric}
	if e.options.Wanted != nil {
		o.Unwanted = e.options.Wanted.Done()
	}
	i.SetOwner(o)
	e.inst = i
}

// create calls rl_create and gets the memory for seeds and masks.
func (e *Env) create() error {
	i := e.inst
	n, err := i.Call(hostabi.ExportCreate, e.plugin.file.Config.Init,
		uint64(i.ArgsPtr), uint64(len(e.plugin.file.Args)), uint64(e.options.Envs), uint64(e.options.Autoreset))
	if err != nil {
		return err
	}
	if n < 0 {
		return &guest.Error{Kind: env.FaultStatus, Call: hostabi.ExportCreate, Reason: i.Words(hostabi.Status(n))}
	}
	e.batch = uint64(n)
	if e.scratch, err = i.Allocate(e.scratchBytes(), 64); err != nil {
		return err
	}
	if guest.Overlap(e.scratch, e.scratchBytes(), i.ErrorPtr, guest.ErrorBytes) {
		return guest.BadMemory(e.scratch, e.scratchBytes(), "memory that it gave to the host before")
	}
	return nil
}

// scratchBytes is the room for a seed and a mask byte for each environment and, after them, for tensors that the host never
// reads.
func (e *Env) scratchBytes() uint32 {
	n := uint32(e.options.Envs) * 9
	if unread := unreadBytes(&e.plugin.spec); unread > 0 {
		n = alignUp(n, unreadAlign) + unread
	}
	return n
}

// Spec returns the environment's description.
func (e *Env) Spec() *hostabi.EnvSpec { return &e.plugin.spec }

// Bind maps the block's guest region into the guest, the first time, and points the guest at it.
func (e *Env) Bind(b env.Block) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.checkBlock(b); err != nil {
		return err
	}
	e.rows = 0 // until the guest has agreed
	w, err := e.window(b)
	if err != nil {
		return e.fault(err)
	}
	err = e.request(guest.Bind, e.batch, uint64(w.bindings), uint64(len(e.plugin.spec.Tensors)))
	if err == nil {
		e.rows, e.bound = b.Schema.Shape.Steps, w
	}
	return err
}

// request makes one call that works on the batch and returns a status.
func (e *Env) request(x guest.Export, args ...uint64) error {
	result, err := e.inst.Request(x, e.plugin.file.Config.Step, args...)
	if err != nil {
		return e.fault(err)
	}
	if result != 0 {
		return e.statusFault(result)
	}
	return nil
}

// checkBlock rejects blocks that this Env cannot step into.
func (e *Env) checkBlock(b env.Block) error {
	if err := e.options.CheckBlock(&e.plugin.spec, &b); err != nil {
		return err
	}
	if n := b.Schema.GuestBytes; b.Offset%linear.HostPage != 0 || n <= 0 || n%linear.HostPage != 0 {
		return fmt.Errorf("%w: %s: block %d is not made of whole pages: %d bytes at offset %d",
			env.ErrUnsupported, e.options.Name, b.Index, n, b.Offset)
	}
	return nil
}

// Reset starts new episodes; see env.Env.
func (e *Env) Reset(t int, mask []uint8, seeds []uint64) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	defer e.gate.Leave()
	if err := e.options.CheckReset(e.rows, t, mask, seeds); err != nil {
		return err
	}
	i := e.inst
	for k, seed := range seeds {
		if mask == nil || mask[k] != 0 {
			i.SeedStream(k, seed)
		}
	}
	memory := i.View(e.scratch, e.scratchBytes())
	var seedsPtr, maskPtr uint32
	if seeds != nil {
		seedsPtr = e.scratch
		for k, seed := range seeds {
			binary.LittleEndian.PutUint64(memory[8*k:], seed)
		}
	}
	if mask != nil {
		n := e.options.Envs
		maskPtr = e.scratch + uint32(8*n)
		copy(memory[8*n:], mask)
	}
	return e.request(guest.Reset, e.batch, uint64(t), uint64(maskPtr), uint64(seedsPtr))
}

// Step makes one step of every environment; see env.Env.
func (e *Env) Step(t int) error {
	if err := e.gate.Enter(); err != nil {
		return err
	}
	if err := e.options.CheckStep(e.rows, t); err != nil {
		e.gate.Leave()
		return err
	}
	i := e.inst
	i.CountStep()
	i.Begin(e.plugin.file.Config.Step)
	var result int32
	var err error
	if e.pace.parts > 1 || i.Steps()&measureMask == 1 {
		result, err = e.stepPaced(t)
	} else {
		i.Stack[0], i.Stack[1] = e.batch, uint64(t) // most steps: no call between this one and the guest's
		result, err = i.Run(guest.Step)
	}
	if err != nil || result != 0 {
		defer e.gate.Leave()
		if err != nil {
			return e.fault(err)
		}
		return e.stepFault(result, t)
	}
	e.gate.Leave()
	return nil
}

// Renew returns the Env to the state just after its creation.
func (e *Env) Renew() error {
	if _, err := e.gate.EnterPoisoned(); err != nil {
		return err
	}
	defer e.gate.Leave()
	e.rows, e.windows, e.pace = 0, nil, pace{}
	var err error
	if e.initial == nil {
		err = e.start()
	} else {
		e.inst, err = e.inst.Restore(e.initial)
	}
	if err != nil {
		err = e.fault(err)
		e.gate.Poison()
	}
	return err
}

// Close frees the environments. It fails if another call is running.
func (e *Env) Close() error {
	first, err := e.gate.Shut()
	if !first {
		return err
	}
	e.inst.Close()
	return e.plugin.module.Leave()
}

// refusal turns a status into an error.
func refusal(e *Env, n int32) error {
	err := e.statusFault(n)
	switch hostabi.Status(n) {
	case hostabi.StatusUnsupported:
		return fmt.Errorf("%w: %w", env.ErrUnsupported, err)
	case hostabi.StatusVersion:
		return fmt.Errorf("%w: %w", env.ErrStateVersion, err)
	}
	return err
}

// borrow allocates guest memory while use runs.
func (e *Env) borrow(size uint32, use func(buf uint32) error) error {
	if size == 0 || size > maxEnvState {
		return fmt.Errorf("%w: %s: %d bytes, at most %d can be borrowed", env.ErrUnsupported, e.options.Name, size, maxEnvState)
	}
	buf, err := e.inst.Allocate(size, 64)
	if err != nil {
		return e.fault(err)
	}
	if err := e.checkOverlap(buf, size); err != nil {
		return e.fault(err)
	}
	if err := use(buf); err != nil {
		return err
	}
	_, err = e.inst.Call(hostabi.ExportFree, e.plugin.file.Config.Init, uint64(buf), uint64(size))
	if err != nil {
		return e.fault(err)
	}
	return nil
}

// identity identifies the plugin and the batch that a snapshot fits.
func (e *Env) identity() []byte {
	hash, _ := hex.DecodeString(e.plugin.file.Hash)
	b := append([]byte(snapshotMagic), hash...)
	b = binary.LittleEndian.AppendUint32(b, uint32(e.options.Envs))
	b = binary.LittleEndian.AppendUint32(b, uint32(e.options.Autoreset))
	if data := e.plugin.file.Data; data != nil { // descriptors are of its entries
		b = append(b, data.Digest...)
	}
	return b
}

// snapshotMagic begins every snapshot; its digit is the version of the format.
const snapshotMagic = "rlwasm2\n"

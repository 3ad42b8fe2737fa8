package rollout

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// batch is the environments of one split in one version.
type batch struct {
	c       *shared
	index   int // of the split
	env     env.Env
	starter env.Starter // env, where another split can run while it steps; else nil
	plugin  env.Plugin
	maker
	schema *trajectory.Schema // in the version's own words; laid out like the component's
	raw    bool               // the loss uses raw rewards, in a column that others write or have written
	calls  uint64             // of Step since the environments were made or renewed
	copied uint64             // bytes copied by wrappers that have been counted
	// reportsTo counts the environments' reports; nil: nothing does.
	reportsTo atomic.Pointer[reporter]

	saved []byte // room for the state of one environment

	probation *probation // until the change to them is settled; else nil

	cut context.CancelFunc // has the environments end their current call

	// Next to other batches:
	pad      *pad    // the batch's own block, which it steps into
	wants    []uint8 // 1 where the environment wants a reset before the next step, though nobody looks at it
	wanting  bool
	mask     []uint8
	stepping bool  // FinishStep is due
	err      error // of the step

	tape *tape.Writer // nil: nothing is recorded
}

// probation makes the first fault of environments take the component back to the previous ones.
type probation struct {
	onFault  func(fault error) bool // false: the probation has just ended
	rollBack func(fault error)
}

// newBatch makes the environments of a split; change is as for newTape. Any goroutine.
func newBatch(c *shared, p env.Plugin, schema *trajectory.Schema, index int, change uint64) (*batch, error) {
	n := c.envs()
	b := &batch{c: c, index: index, plugin: p, schema: schema, wants: make([]uint8, n), mask: make([]uint8, n)}
	if schema.Spec.Flags&hostabi.SpecInitCalls != 0 {
		c.h.Log.Info("environments are made, which takes long by what they say", "env", schema.Spec.Name, "envs", n, "first", b.first())
	}
	var wanted context.Context
	wanted, b.cut = context.WithCancel(c.wanted)
	e, err := p.NewEnv(env.Options{
		Name: c.h.Name, Envs: n, FirstEnv: b.first(), Autoreset: c.mode, Seed: c.seedOf(c.life * lifeAttempts),
		Metric: b.report, Log: c.h.Log, Stats: c.h.Stats, Tolerate: b.tolerates, Wanted: wanted, Made: c.h.Made,
	})
	if err != nil {
		b.cut()
		return nil, err
	}
	b.env, b.raw = e, schema.Has(trajectory.ShapedReward) && !env.Shapes(p)
	// In synchronous mode the order of events is the same each time, so no other split runs meanwhile.
	if starter, ok := e.(env.Starter); ok && c.config.Splits > 1 && !c.h.Run.Synchronous {
		b.starter = starter
	}
	b.tape = b.newTape(change)
	return b, nil
}

// reporter takes a number of an environment of a batch, -1 where the runtime does not know it. Any goroutine that the batch is
// called on.
type reporter func(b *batch, m env.Metric)

func (b *batch) report(m env.Metric) {
	if to := b.reportsTo.Load(); to != nil {
		(*to)(b, m)
	}
}

// learnRaw copies the rewards of row t to the shaped column, where nothing around the environments has shaped them.
func (b *batch) learnRaw(tr trajectory.Trajectory, t int) {
	if b.raw {
		trajectory.ShareOutcome(tr, t)
		copy(tr.RowBytes(trajectory.ShapedReward, t), tr.RowBytes(trajectory.Reward, t))
	}
}

// first is the global index of environment 0.
func (b *batch) first() int { return b.c.h.FirstEnv + b.index*b.c.envs() }

// want asks for a reset of an environment of the batch that another batch steps.
func (b *batch) want(env int) { b.wants[env], b.wanting = 1, true }

func (b *batch) forgetWants() {
	if b.wanting {
		clear(b.wants)
		b.wanting = false
	}
}

// onFault reports whether a fault takes the component back to the previous environments.
func (b *batch) onFault(fault error) bool { return b.probation != nil && b.probation.onFault(fault) }

// tolerates handles a fault of a wrapper's single call. It costs the component a restart, and is not tolerated on probation.
func (b *batch) tolerates(fault error) bool {
	c := b.c
	if b.probation != nil || !c.spend() {
		return false
	}
	b.version.faults.Inc()
	c.h.Log.Warn("a wrapper has failed: the step goes on without it", "error", fault, "restart", c.counted(), "max_restarts", c.config.MaxRestarts)
	return true
}

// isFault reports whether an error is the environments' own.
func isFault(err error) bool {
	var f *env.Fault
	return errors.As(err, &f)
}

// outputFault blames an environment of the batch, or none where index is -1, for what it wrote.
func (b *batch) outputFault(call string, index int, err error) error {
	if index >= 0 {
		index += b.first()
	}
	fault := &env.Fault{Kind: env.FaultOutput, Name: b.c.h.Name, Source: b.schema.Spec.Name, Call: call, Env: index,
		Step: b.calls, Err: err}
	b.tape.Lost(fault)
	return fault
}

// block returns one of the arena's blocks for a Bind.
func (b *batch) block(mem []byte, index uint32) env.Block {
	return env.Block{Trajectory: trajectory.Trajectory{Schema: b.schema, Mem: mem}, Index: index, FD: b.c.arena.FD(),
		Offset: b.c.arena.BlockOffset(index)}
}

// bindPad makes the environments step into their own block, in the place of the split's first one.
func (b *batch) bindPad() error {
	return b.bind(b.pad.block(b.schema, uint32(b.index*b.c.blocksPerSplit())))
}

// countCopied counts the bytes that wrappers have copied since its last call.
func (b *batch) countCopied() {
	n := env.Copied(b.env)
	b.c.wrappedBytes.Add(n - b.copied)
	b.copied = n
}

// newTape returns the tape of the environments; nil where nothing is recorded. change is the number of the change that they come with.
func (b *batch) newTape(change uint64) *tape.Writer {
	c := b.c
	if c.h.Run.Tape == nil {
		return nil
	}
	h := tape.Head{
		Name: c.h.Name, Split: b.index, Life: tape.Life(c.h.Run.Resumes, c.h.Begun), First: b.first(), Envs: c.envs(), Agents: b.schema.Agents,
		Seed: c.seedOf(c.life * lifeAttempts), Autoreset: c.mode, SoA: b.schema.Shape.SoA, Hash: b.plugin.Hash(), Change: change,
	}
	if c.h.Loaded != nil {
		h.Loaded = c.h.Loaded(b.plugin)
	}
	return tape.NewWriter(b.env, c.h.Run.Tape.Stream(h))
}

// bind binds a block.
func (b *batch) bind(block env.Block) error {
	b.tape.Bind(block.Trajectory)
	err := b.env.Bind(block)
	b.tape.Lost(err)
	return err
}

// reset starts new episodes; see env.Env.
func (b *batch) reset(row int, mask []uint8, seeds []uint64) error {
	b.tape.Reset(mask, seeds)
	err := b.env.Reset(row, mask, seeds)
	b.tape.Lost(err)
	return err
}

// step steps the environments.
func (b *batch) step(t int) error {
	b.tape.Step(t)
	err := b.env.Step(t)
	b.tape.Lost(err)
	return err
}

// startStep and finishStep are step in two halves; see env.Starter.
func (b *batch) startStep(t int, ready func()) (over bool, err error) {
	b.tape.Step(t)
	over, err = b.starter.StartStep(t, ready)
	b.tape.Lost(err)
	return over, err
}

func (b *batch) finishStep() error {
	err := b.starter.FinishStep()
	b.tape.Lost(err)
	return err
}

// closeWithin is how long close waits for a step under way before it makes the environments end it.
const closeWithin = time.Second

// close frees the environments and their own block. It waits for a step under way.
func (b *batch) close() error {
	b.reportsTo.Store(nil)
	if b.stepping {
		b.stepping = false
		late := time.AfterFunc(closeWithin, b.cut)
		_ = b.starter.FinishStep() // of a block that is given up anyway
		late.Stop()
	}
	b.tape.Close()
	err := b.env.Close()
	b.cut()
	if b.pad != nil {
		err = errors.Join(err, b.pad.close())
		b.pad = nil
	}
	return err
}

// pad is a block that one batch alone writes and its split alone reads. It belongs to no arena: it has one user at a
// time, and is freed when it is closed.
type pad struct {
	segment *shm.Segment
	tr      trajectory.Trajectory
}

func newPad(name string, schema *trajectory.Schema) (*pad, error) {
	segment, err := shm.Create(name+".pad", schema.Bytes)
	if err != nil {
		return nil, err
	}
	return &pad{segment, trajectory.Trajectory{Schema: schema, Mem: segment.Bytes()[:schema.Bytes:schema.Bytes]}}, nil
}

// block returns the block for a Bind. A runtime that keeps a window for each index puts the real block of that index
// over it later, and so releases the pad.
func (p *pad) block(schema *trajectory.Schema, index uint32) env.Block {
	return env.Block{Trajectory: trajectory.Trajectory{Schema: schema, Mem: p.tr.Mem}, Index: index, FD: p.segment.FD()}
}

func (p *pad) close() error { return p.segment.Close() }

// takeStates copies the state of the running environments into the batch's. owner returns the batch that runs an
// environment; whole is the batch that runs all of them, if one does. After an error the batch's environments are as good
// as new, and the running ones are unchanged.
func (b *batch) takeStates(whole *batch, owner func(env int) *batch) error {
	err := env.ErrUnsupported
	if whole != nil {
		err = b.takeWhole(whole)
	}
	if err != nil {
		err = b.takeEach(owner)
	}
	if err != nil {
		b.renewed(err)
		return err
	}
	if whole == nil {
		b.tape.Took(nil)
	} else {
		b.tape.Took(whole.tape)
	}
	return nil
}

// renewed makes environments as good as new after an error that they cannot continue from.
func (b *batch) renewed(err error) {
	var f *env.Fault
	if errors.As(err, &f) && f.Poisons() || errors.Is(err, env.ErrPoisoned) {
		_ = b.renew() // if that fails too, the next bind finds it
	}
}

// takeWhole takes whole instances, bit for bit, between plugins that differ in wrappers alone. The other batch may keep any
// state then, and begins from scratch.
func (b *batch) takeWhole(from *batch) error {
	same := env.SameInstances(from.plugin, b.plugin)
	if !same && !env.Rewraps(b.plugin, from.plugin) {
		return env.ErrUnsupported
	}
	err := env.ErrUnsupported
	if s, ok := b.env.(env.Successor); ok {
		err = s.TakeOver(from.env)
	}
	c, copies := b.env.(env.Copier)
	switch {
	case err == nil:
	case same:
		err = copyEnv(b.env, from.env)
	case copies:
		err = c.CopyFrom(from.env)
	}
	if err == nil {
		b.calls = from.calls
	}
	return err
}

// copyEnv makes one batch of environments a copy of another.
func copyEnv(to, from env.Env) error {
	if c, ok := to.(env.Copier); ok {
		if err := c.CopyFrom(from); !errors.Is(err, env.ErrUnsupported) {
			return err
		}
	}
	state, err := from.Snapshot()
	if err != nil {
		return err
	}
	return to.Restore(state)
}

// takeEach takes the states of the environments one by one. It allocates nothing if the environments do not.
func (b *batch) takeEach(owner func(env int) *batch) error {
	into, ok := b.env.(env.Stater)
	if !ok {
		return env.ErrUnsupported
	}
	for index := range b.c.envs() {
		from, ok := owner(index).env.(env.Stater)
		if !ok {
			return env.ErrUnsupported
		}
		var err error
		if b.saved, err = from.SaveEnv(index, b.saved[:0]); err != nil {
			return err
		}
		if err := into.LoadEnv(index, b.saved); err != nil {
			return err
		}
	}
	return nil
}

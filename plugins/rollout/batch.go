package rollout

import (
	"errors"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/shm"
)

// batch is the environments of one split in one version.
type batch struct {
	env     env.Env
	starter env.Starter // env, where another split can go on while it steps; else nil
	plugin  env.Plugin
	maker
	schema    *trajectory.Schema    // in the version's own words; laid out like the component's
	calls     uint64                // of Step since the environments were made or renewed
	reportsTo atomic.Pointer[split] // where what the environments report counts; nil: nowhere

	saved []byte // room for the state of one environment

	tried bool // on probation: its first fault takes the component back to what ran before

	// Beside other batches:
	pad      *pad    // it steps into this block of its own
	wants    []uint8 // 1 where the environment wants a reset before the next step, though nobody looks at it
	wanting  bool
	mask     []uint8
	stepping bool  // FinishStep is due
	err      error // of the step
}

// newBatch makes the environments of a split. Any goroutine.
func (c *Rollout) newBatch(p env.Plugin, schema *trajectory.Schema, split int) (*batch, error) {
	n := c.config.Envs / c.config.Splits
	first := c.h.FirstEnv + split*n
	b := &batch{plugin: p, schema: schema, wants: make([]uint8, n), mask: make([]uint8, n)}
	e, err := p.NewEnv(env.Options{
		Name: c.h.Name, Envs: n, FirstEnv: first, Autoreset: c.mode,
		Seed:   c.seedOf(c.life * lifeAttempts),
		Metric: b.report,
	})
	if err != nil {
		return nil, err
	}
	b.env = e
	// In synchronous mode the order of what happens is the same each time, so nobody goes on meanwhile.
	if starter, ok := e.(env.Starter); ok && c.config.Splits > 1 && !c.h.Run.Synchronous {
		b.starter = starter
	}
	return b, nil
}

// want asks for a reset of an environment of the batch that another batch stands for.
func (b *batch) want(env int) { b.wants[env], b.wanting = 1, true }

func (b *batch) forgetWants() {
	if b.wanting {
		clear(b.wants)
		b.wanting = false
	}
}

// close frees the environments and their own block. A step that was begun is waited for.
func (b *batch) close() error {
	b.reportsTo.Store(nil)
	if b.stepping {
		b.stepping = false
		_ = b.starter.FinishStep() // of a block that is given up anyway
	}
	err := b.env.Close()
	return errors.Join(err, b.closePad())
}

func (b *batch) closePad() error {
	if b.pad == nil {
		return nil
	}
	p := b.pad
	b.pad = nil
	return p.close()
}

// pad is a block that nobody but one batch writes and nobody but its split reads. It is no arena's: it has one user at a
// time, and goes at once when it is closed.
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
// over it later, and lets go of the pad by that.
func (p *pad) block(schema *trajectory.Schema, index uint32) env.Block {
	return env.Block{Trajectory: trajectory.Trajectory{Schema: schema, Mem: p.tr.Mem}, Index: index, FD: p.segment.FD()}
}

func (p *pad) close() error { return p.segment.Close() }

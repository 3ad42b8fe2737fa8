package rollout

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// prepare makes all that the change takes.
func (x *change) prepare() error {
	c := x.c
	spec := x.o.Plugin.Spec()
	if reason := c.differs(&spec); reason != "" {
		return &component.SpacesError{Component: c.h.Name, Reason: reason, Running: c.schema.Spec, Next: spec}
	}
	schema, err := trajectory.NewSchema(spec, c.schema.Shape)
	if err != nil {
		return err
	}
	x.batches, x.pads = make([]*batch, c.config.Splits), make([]*pad, c.config.Splits)
	for i := range c.config.Splits {
		if x.share(i) == 0 {
			continue
		}
		b, err := c.newBatch(x.o.Plugin, schema, i)
		if err != nil {
			return err
		}
		x.batches[i] = b
		if b.pad, err = newPad(c.h.Name, schema); err != nil {
			return err
		}
		if x.at() == component.AtEpisode {
			if x.pads[i], err = newPad(c.h.Name, c.schema); err != nil {
				return err
			}
		}
		if err := c.warmUp(b, i); err != nil {
			return err
		}
		if x.o.KeepState {
			b.rehearse()
		}
		if x.at() != component.AtEpisode { // else they go on with the block that they have
			if err := c.mapAhead(b, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// warmUp has the environments observe something, in a place where nobody else looks: the guest donates a window for
// each of the split's blocks, and what it cannot do at all it cannot do here.
func (c *Rollout) warmUp(b *batch, split int) error {
	for k := range c.blocksPerSplit() {
		index := uint32((split+1)*c.blocksPerSplit() - 1 - k) // the first one last: it is that of blocks side by side
		if err := b.env.Bind(b.pad.block(b.schema, index)); err != nil {
			return err
		}
	}
	seeds := make([]uint64, b.schema.Shape.Envs)
	first := c.h.FirstEnv + split*len(seeds)
	for i := range seeds {
		seeds[i] = env.Seed(c.h.Run.Seed, first+i)
	}
	if err := b.env.Reset(0, nil, seeds); err != nil {
		return err
	}
	if index, err := b.pad.tr.CheckObs(0); err != nil {
		if index >= 0 {
			index += first
		}
		return &env.Fault{Kind: env.FaultOutput, Name: c.h.Name, Source: b.schema.Spec.Name,
			Call: hostabi.ExportReset, Env: index, Err: err}
	}
	return nil
}

// rehearse has the environments do what is asked of them when episodes are carried over, so that nothing of it happens
// for the first time then. One that fails at it is as good as new, and fails again when it matters.
func (b *batch) rehearse() {
	stater, ok := b.env.(env.Stater)
	if !ok {
		return
	}
	for _, env := range []int{0, b.schema.Shape.Envs - 1} {
		var err error
		if b.saved, err = stater.SaveEnv(env, b.saved[:0]); err == nil {
			err = stater.LoadEnv(env, b.saved)
		}
		if err != nil {
			b.renewed(err)
			return
		}
	}
}

// blockMapper is an Env that maps blocks, and can do so before it is bound to them.
type blockMapper interface {
	// MapAhead puts blocks where Bind finds them. Nothing is bound afterwards.
	MapAhead(blocks []env.Block) error
}

// mapAhead shows the environments the blocks that they will step into, of which others are in use: nothing of theirs
// runs from here on until they have gone over. Mapping a block takes as long as all else that happens while stepping
// stands still.
func (c *Rollout) mapAhead(b *batch, split int) error {
	m, ok := b.env.(blockMapper)
	if !ok {
		return nil
	}
	blocks := make([]env.Block, c.blocksPerSplit())
	for k := range blocks {
		index := uint32(split*len(blocks) + k)
		blocks[k] = env.Block{
			Trajectory: trajectory.Trajectory{Schema: b.schema, Mem: b.pad.tr.Mem}, Index: index, FD: c.arena.FD(),
			Offset: c.arena.BlockOffset(index),
		}
	}
	return m.MapAhead(blocks)
}

// differs returns the first thing that keeps environments from the place of those that run, or "".
func (c *Rollout) differs(next *hostabi.EnvSpec) string {
	running := &c.schema.Spec
	for _, role := range []hostabi.Role{hostabi.RoleObservation, hostabi.RoleAction, hostabi.RoleActionMask} {
		was, had := running.Tensor(role)
		is, has := next.Tensor(role)
		switch {
		case had != has && has:
			return fmt.Sprintf("it has a tensor of role %v, those that run have none", role)
		case had != has:
			return fmt.Sprintf("it has no tensor of role %v", role)
		case has && !sameSpace(&was, &is):
			return fmt.Sprintf("its %v is another one", role)
		}
	}
	if next.Autoreset&c.mode == 0 {
		return fmt.Sprintf("it does not offer autoreset %v, which this run uses", c.mode)
	}
	if c.schema.Shape.SoA && next.Caps&(hostabi.CapStrides|hostabi.CapPreferSoA) == 0 {
		return "it does not take observations as [elem][env], the layout of this run"
	}
	return ""
}

// sameSpace tells whether two tensors take the same values; names and bounds do not matter.
func sameSpace(a, b *hostabi.TensorDesc) bool {
	return a.DType == b.DType && a.N == b.N && a.Rank == b.Rank && slices.Equal(a.Shape[:a.Rank], b.Shape[:b.Rank])
}

package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// schemaFor lays blocks out for new environments, or says why they cannot replace the running ones.
func (c *shared) schemaFor(p env.Plugin) (*trajectory.Schema, error) {
	spec := p.Spec()
	if env.Shapes(p) && !c.schema.Has(trajectory.ShapedReward) {
		return nil, &component.SpacesError{Component: c.h.Name, Reason: "wrappers shape its rewards, and the blocks of this run have no column for that",
			Running: c.schema.Spec, Next: spec}
	}
	if reason := c.differs(&spec); reason != "" {
		return nil, &component.SpacesError{Component: c.h.Name, Reason: reason, Running: c.schema.Spec, Next: spec}
	}
	if c.schema.Shape.SoA && spec.Caps&(hostabi.CapStrides|hostabi.CapPreferSoA) == 0 {
		name, _, _ := strings.Cut(c.h.Name, "[")
		return nil, &component.SpacesError{Component: c.h.Name, Reason: "it does not take observations as [elem][env], the layout of this run",
			Running: c.schema.Spec, Next: spec, Help: fmt.Sprintf("rlhost reload --set component.%s.layout=aos, then this change again", name)}
	}
	return trajectory.NewSchema(spec, c.schema.Shape)
}

// differs returns the first reason why environments cannot replace the running ones, or "".
func (c *shared) differs(next *hostabi.EnvSpec) string {
	running := &c.schema.Spec
	if was, is := running.Agents(), next.Agents(); was != is {
		return fmt.Sprintf("it has %d agents, those that run have %d", is, was)
	}
	same := func(a, b hostabi.Group) bool { return a.Name == b.Name && a.Agents == b.Agents } // whatever single agents are called
	if !slices.EqualFunc(running.Groups, next.Groups, same) && max(len(running.Groups), len(next.Groups)) > 1 {
		return "its agents are in other groups"
	}
	for _, role := range []hostabi.Role{hostabi.RoleObservation, hostabi.RoleAction, hostabi.RoleActionMask, hostabi.RoleDiscount, hostabi.RoleResetParam,
		hostabi.RoleActive, hostabi.RoleReward, hostabi.RoleTerminated, hostabi.RoleTruncated} {
		was, is := running.All(role), next.All(role)
		same := func(a, b hostabi.Tensor) bool { return sameSpace(&a, &b) && (len(was) == 1 || a.Path == b.Path) }
		switch {
		case len(was) == 0 && len(is) > 0:
			return fmt.Sprintf("it has a tensor of role %v, those that run have none", role)
		case len(was) > 0 && len(is) == 0:
			return fmt.Sprintf("it has no tensor of role %v", role)
		case !slices.EqualFunc(was, is, same):
			return fmt.Sprintf("its %v is another one", role)
		}
	}
	if was, is := infos(running), infos(next); was != is {
		return fmt.Sprintf("its info is %s, that of those that run is %s", cmp.Or(is, "none"), cmp.Or(was, "none"))
	}
	if next.Autoreset&c.mode == 0 {
		return fmt.Sprintf("it does not offer autoreset %v, which this run uses", c.mode)
	}
	return ""
}

// infos returns the infos of an environment, those at reset last.
func infos(s *hostabi.EnvSpec) string {
	list := s.Spaces(hostabi.RoleInfo)
	if first := s.Spaces(hostabi.RoleResetInfo); first != "" {
		list += " at reset " + first
	}
	return list
}

// sameSpace reports whether two tensors take the same values. Bounds matter where a policy acts within them, names do not.
func sameSpace(a, b *hostabi.Tensor) bool {
	for i := range a.Elems(hostabi.MaxTensorElems) {
		if a.Role != hostabi.RoleAction || a.Discrete() || a.Shape != b.Shape {
			break
		}
		aLow, aHigh := a.Bounds(i)
		if bLow, bHigh := b.Bounds(i); aLow != bLow || aHigh != bHigh {
			return false
		}
	}
	if (a.Flags^b.Flags)&hostabi.TensorPerAgent != 0 {
		return false
	}
	return a.Group == b.Group && a.DType == b.DType && a.N == b.N && a.Start == b.Start && slices.Equal(a.Counts, b.Counts) &&
		a.Rank == b.Rank && slices.Equal(a.Shape[:a.Rank], b.Shape[:b.Rank])
}

// prepare has new environments make their first calls in their own block, ahead of going over. mapped: they will step
// into the blocks of the split, which are mapped here.
func (b *batch) prepare(keepState, mapped bool) (err error) {
	if b.pad, err = newPad(b.c.h.Name, b.schema); err != nil {
		return err
	}
	if err := b.warmUp(); err != nil {
		return err
	}
	if keepState {
		b.rehearse()
	}
	if mapped {
		return b.mapAhead()
	}
	return nil
}

// warmUp has the environments observe something that nobody reads: the guest donates a window for each of the split's
// blocks, and fails here if it cannot.
func (b *batch) warmUp() error {
	blocks := b.c.blocksPerSplit()
	for k := range blocks {
		index := uint32((b.index+1)*blocks - 1 - k) // the first one last: it is for blocks side by side
		if err := b.bind(b.pad.block(b.schema, index)); err != nil {
			return err
		}
	}
	seeds := make([]uint64, b.schema.Shape.Envs)
	for i := range seeds {
		seeds[i] = env.Seed(b.c.h.Run.Seed, b.first()+i)
	}
	if err := b.reset(0, nil, seeds); err != nil {
		return err
	}
	if index, err := b.pad.tr.CheckObs(0); err != nil {
		return b.outputFault(hostabi.ExportReset, index, err)
	}
	return nil
}

// rehearse makes the calls that carry episodes over, so that none is the environments' first then. Environments that
// fail at it are made as good as new, and fail again when it matters.
func (b *batch) rehearse() {
	stater, ok := b.env.(env.Stater)
	if !ok {
		return
	}
	for _, env := range []int{0, b.schema.Shape.Envs - 1} {
		var err error
		if b.saved, err = stater.SaveEnv(env, b.saved[:0]); err == nil {
			err = stater.LoadEnv(env, b.saved)
			b.tape.Changed(true)
		}
		if err != nil {
			b.renewed(err)
			return
		}
	}
}

// mapAhead shows the environments the blocks that they will step into. Others use these blocks: the environments do
// not run from here on until they have gone over. Mapping a block takes as long as the rest of a pause in stepping.
func (b *batch) mapAhead() error {
	m, ok := b.env.(env.BlockMapper)
	if !ok {
		return nil
	}
	blocks := make([]env.Block, b.c.blocksPerSplit())
	for k := range blocks {
		blocks[k] = b.block(b.pad.tr.Mem, uint32(b.index*len(blocks)+k))
	}
	return m.MapAhead(blocks)
}

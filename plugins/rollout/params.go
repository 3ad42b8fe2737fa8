package rollout

import (
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

const signalResets = "resets"

// bindParams gets ready to ask for reset parameters, where the table says so.
func (c *Rollout) bindParams() error {
	if !c.config.ResetParams {
		return nil
	}
	bad := func(reason, help string, args ...any) error {
		return &component.ConfigError{Key: "reset_params", Reason: fmt.Sprintf(reason, args...), Help: help}
	}
	switch {
	case c.schema.ParamBytes() == 0:
		return bad("asks for reset parameters, and %s has none", "leave it out", c.schema.Spec.Name)
	case c.h.Readers(signalResets) == 0:
		return bad("asks for reset parameters, and nobody answers", "wire %s to a component that does, and back", component.Qualified(c.h.Name, signalResets))
	}
	c.resets = c.h.Signal(signalResets)
	c.h.Slot("on_params", c.onParams)
	return nil
}

// askParams asks for the reset parameters of the episodes that begin in the block.
func (s *split) askParams() {
	m := trajectory.ResetRequest{Block: s.loan.Handle(), Split: uint32(s.index), Step: s.steps, FirstEnv: uint32(s.first)}.Message()
	m.Sender = s.c.h.ID
	s.asking = true
	if err := s.c.resets.Emit(m); err != nil {
		s.c.h.Fail(err)
	}
}

// onParams goes on with the split whose reset parameters have been written.
func (c *Rollout) onParams(m *hostabi.Message) {
	r := trajectory.ResetRequestOf(m)
	if int(r.Split) >= len(c.splits) || !c.splits[r.Split].asking || c.splits[r.Split].loan.Handle() != r.Block {
		c.h.Fail(fmt.Errorf("reset parameters for %v of split %d, which were not asked for", r.Block, r.Split))
		return
	}
	s := c.splits[r.Split]
	s.asking = false
	if env, err := s.paramsOf().Check(); err != nil {
		c.h.Fail(fmt.Errorf("what answers %s: environment %d: %w", signalResets, s.first+env, err))
		return
	}
	s.paramsOf().Save(s.params)
	s.enter()
}

// enter writes row 0 of a block that has its reset parameters, and asks for its actions.
func (s *split) enter() {
	if err := s.firstRow(); err != nil {
		s.fault(err)
		return
	}
	s.ask()
}

// paramsOf are the reset parameters of the block.
func (s *split) paramsOf() trajectory.Params { return trajectory.Params{Trajectory: s.tr} }

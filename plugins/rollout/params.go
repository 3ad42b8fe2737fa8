package rollout

import (
	"fmt"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

const signalResets = "resets"

// bindParams gets ready to ask for reset parameters, where the table says so.
func (c *Rollout) bindParams() (err error) {
	if !c.config.ResetParams {
		return nil
	}
	if c.schema.ParamBytes() == 0 {
		return &component.ConfigError{Key: "reset_params", Reason: fmt.Sprintf("asks for reset parameters, and %s has none", c.schema.Spec.Name), Help: "leave it out"}
	}
	c.h.Slot("on_params", func(m *hostabi.Message) { c.onAnswer(m, forParams, (*split).onParams) })
	c.resets, err = c.asks("reset_params", "reset parameters", signalResets)
	return err
}

// onParams goes on with a split whose reset parameters have been written.
func (s *split) onParams() {
	if env, err := s.paramsOf().Check(); err != nil {
		s.c.h.Fail(fmt.Errorf("what answers %s: environment %d: %w", signalResets, s.first+env, err))
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

package rollout

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

const signalRewards = "rewards"

// bindShaping gets ready to ask for shaped rewards, where the table says so.
func (c *Rollout) bindShaping() (err error) {
	if !c.config.ShapedRewards {
		return nil
	}
	if !c.schema.Has(trajectory.ShapedReward) {
		return &component.ConfigError{Key: "shaped_rewards", Reason: "asks for shaped rewards, and nobody may write them",
			Help: fmt.Sprintf("add write = [%q] to the wire of %s", trajectory.ShapedReward.String(), component.Qualified(c.h.Name, signalRewards))}
	}
	c.h.Slot("on_shaped", func(m *hostabi.Message) { c.onAnswer(m, forRewards, (*split).onShaped) })
	c.rewards, err = c.asks("shaped_rewards", "shaped rewards", signalRewards)
	return err
}

// onShaped commits the block of a split whose rewards have been shaped.
func (s *split) onShaped() {
	valid := s.tr.Bytes(trajectory.Valid)
	for i, r := range s.tr.Float32(trajectory.ShapedReward) {
		if valid[i] != 0 && (math.IsNaN(float64(r)) || math.IsInf(float64(r), 0)) {
			env := s.first + i%s.n/s.c.schema.Agents
			s.c.h.Fail(fmt.Errorf("what answers %s: shaped_reward of env step %d of environment %d is %g", signalRewards, s.steps+uint64(i/s.n), env, r))
			return
		}
	}
	s.finish()
}

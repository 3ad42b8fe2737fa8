// Package shaper is a component that writes the rewards to learn from, in place of the block's own, without a copy.
package shaper

import (
	"fmt"

	"github.com/rlhost/rlhost/sdk/component"
)

// shaper gives the learner, for each reward r, scale·r + shift, at most clip in magnitude.
type shaper struct {
	Scale float64 `toml:"scale"`
	Shift float64 `toml:"shift"` // of every env step
	Clip  float64 `toml:"clip"`  // 0 = none

	reward, shaped component.Column
	answers        component.Signal
	rewards        component.Histogram
}

// New returns an unconfigured shaper.
func New() component.Component {
	c := &shaper{Scale: 1}
	return &component.Declared{
		Config: c,
		Check: func() error {
			return component.Require(c.Clip >= 0, "clip", fmt.Sprintf("is %g, want 0 (none) or more", c.Clip))
		},
		Signals: []component.Output{{Name: "shaped", Payload: "shaped_rewards", Doc: "they have been written", Bind: &c.answers}},
		Slots: []component.Input{{Name: "on_rewards", Payload: "reward_request", Doc: "the rewards of a block can be shaped", Handle: c.onRewards,
			Columns: []component.Want{{Name: "reward", Into: &c.reward}, {Name: "shaped_reward", Into: &c.shaped, Write: true}}}},
		OnStart: func(h component.Host) { c.rewards = h.Histogram("shaper/reward") },
	}
}

// onRewards shapes the rewards of one block and answers. It may where the file's wire grants that.
func (c *shaper) onRewards(m *component.Message) error {
	shaped := c.shaped.Float32()
	for i, r := range c.reward.Float32() {
		shaped[i] = c.shape(r)
	}
	return component.Pass(c.answers, m)
}

func (c *shaper) shape(r float32) float32 {
	x := c.Scale*float64(r) + c.Shift
	if c.Clip > 0 {
		x = max(-c.Clip, min(c.Clip, x))
	}
	c.rewards.Observe(x)
	return float32(x)
}

// Package shaper is a component that writes what is learned from instead of the rewards of each block, where it lies.
package shaper

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/sdk/component"
)

// shaper makes of each reward r what the learner gets: scale·r + shift, at most clip in magnitude.
type shaper struct {
	component.Stateless
	config struct {
		Scale float64 `toml:"scale"`
		Shift float64 `toml:"shift"` // of every env step
		Clip  float64 `toml:"clip"`  // 0 = none
	}
	host    component.Host
	shaped  component.Signal
	rewards component.Histogram
}

// New returns an unconfigured shaper.
func New() component.Component { return &shaper{} }

func (c *shaper) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "shaped", Payload: "shaped_rewards", Doc: "they have been written"}},
		Slots:   []component.Port{{Name: "on_rewards", Payload: "reward_request", Doc: "the rewards of a block can be shaped"}},
	}
}

func (c *shaper) Configure(decode func(into any) error) error {
	c.config.Scale = 1
	err := decode(&c.config)
	if err == nil && c.config.Clip < 0 {
		err = &component.ConfigError{Key: "clip", Reason: fmt.Sprintf("is %g, want 0 (none) or more", c.config.Clip)}
	}
	return err
}

func (c *shaper) Start(h component.Host) error {
	c.host, c.shaped, c.rewards = h, h.Signal("shaped"), h.Histogram("shaper/reward")
	h.Slot("on_rewards", c.onRewards)
	return nil
}

// onRewards shapes the rewards of one block and answers. It may where the file's wire grants that.
func (c *shaper) onRewards(m *component.Message) {
	reward, err := m.Block.Column("reward")
	shaped, granted := m.Block.Writable("shaped_reward")
	if err = errors.Join(err, granted); err == nil {
		for i, r := range reward.Float32() {
			shaped.Float32()[i] = c.shape(r)
		}
		_, err = c.shaped.Emit(*m)
	}
	if err != nil {
		c.host.Fail(err)
	}
}

func (c *shaper) shape(r float32) float32 {
	x := c.config.Scale*float64(r) + c.config.Shift
	if clip := c.config.Clip; clip > 0 {
		x = max(-clip, min(clip, x))
	}
	c.rewards.Observe(x)
	return float32(x)
}

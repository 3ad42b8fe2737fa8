// Package shaper is a component that rewrites the reward column of each trajectory in place, before the learner sees it.
package shaper

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/sdk/component"
)

// shaper gives the learner, for each reward r, scale·r + shift, at most clip in magnitude.
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
		Signals:  []component.Port{{Name: "trajectories", Payload: "trajectory", Doc: "a block with shaped rewards"}},
		Slots:    []component.Port{{Name: "on_trajectories", Payload: "trajectory", Doc: "a full block"}},
		Requests: []component.Request{c.asked().Request},
	}
}

// asked is the request with which a user changes the scale while the run continues.
func (c *shaper) asked() component.Question {
	return component.Asked("set_scale", "sets the scale of rewards, and answers with the former one", c.setScale)
}

type newScale struct {
	Scale float64 `json:"scale"`
}

func (c *shaper) setScale(q newScale) (former float64, err error) {
	if math.Abs(q.Scale) > 1e6 {
		return 0, fmt.Errorf("a scale of %g, want 1e6 at most in magnitude", q.Scale)
	}
	former, c.config.Scale = c.config.Scale, q.Scale
	return former, nil
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
	c.host, c.shaped, c.rewards = h, h.Signal("trajectories"), h.Histogram("shaper/reward")
	h.Slot("on_trajectories", c.onTrajectory)
	h.Handle("set_scale", c.asked().Handle)
	return nil
}

// onTrajectory rewrites the rewards of one block and passes it on. It may where the file's wires grant that.
func (c *shaper) onTrajectory(m *component.Message) {
	reward, err := m.Block.Writable("reward")
	if err == nil {
		for i, r := range reward.Float32() {
			reward.Float32()[i] = c.shape(r)
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

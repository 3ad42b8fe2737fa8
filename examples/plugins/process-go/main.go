// Process-go is a native plugin that shapes rewards: a component between the rollouts and the batcher that rewrites
// the reward column of each trajectory where it lies, before the learner sees it. See README.md.
package main

import (
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/process"
)

func main() {
	process.Serve(process.Plugin{
		Kinds: map[string]func() component.Component{"reward_shaper": newShaper},
		Docs:  map[string]string{"reward_shaper": "scales, shifts and clips rewards before they are learned from"},
	})
}

// shaper makes of each reward r what the learner gets: scale·r + shift, at most clip in magnitude.
type shaper struct {
	config struct {
		Scale float64 `toml:"scale"`
		Shift float64 `toml:"shift"` // of every env step
		Clip  float64 `toml:"clip"`  // 0 = none
	}
	h       *component.Host
	shaped  *bus.Signal
	rewards *stat.Histogram
}

func newShaper() component.Component { return &shaper{} }

// Manifest lists the ports.
func (c *shaper) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "trajectories", Payload: component.PayloadTrajectory, Doc: "a block with shaped rewards"}},
		Slots:   []component.Port{{Name: "on_trajectories", Payload: component.PayloadTrajectory, Doc: "a full block"}},
	}
}

// Configure reads the component's table.
func (c *shaper) Configure(decode func(into any) error) error {
	c.config.Scale = 1
	if err := decode(&c.config); err != nil {
		return err
	}
	if c.config.Clip < 0 {
		return &component.ConfigError{Key: "clip", Reason: fmt.Sprintf("is %g, want 0 (none) or more", c.config.Clip)}
	}
	return nil
}

// Start finds the ports.
func (c *shaper) Start(h *component.Host) error {
	c.h = h
	c.shaped = h.Signal("trajectories")
	h.Slot("on_trajectories", c.onTrajectory)
	c.rewards = h.Stats.Histogram("shaper/reward")
	return nil
}

// onTrajectory rewrites the rewards of one block and passes it on. The block is claimed for this process while the
// slot runs, and for whoever gets it once it is emitted. It is written only where the file's wires grant that.
func (c *shaper) onTrajectory(m *hostabi.Message) {
	tr, lease, err := trajectory.Lease(c.h.Arenas, m.Handle)
	if err != nil {
		c.h.Fail(err)
		return
	}
	defer lease.Release() // after Emit, whose receivers have claims of their own by then

	rewards, err := c.h.Writable("on_trajectories", tr, trajectory.Reward)
	if err != nil {
		c.h.Fail(err)
		return
	}
	for i, r := range rewards {
		rewards[i] = c.shape(r)
		c.rewards.Observe(float64(rewards[i]))
	}
	if err := c.shaped.Emit(*m); err != nil {
		c.h.Fail(err)
	}
}

func (c *shaper) shape(r float32) float32 {
	x := c.config.Scale*float64(r) + c.config.Shift
	if clip := c.config.Clip; clip > 0 {
		x = math.Max(-clip, math.Min(clip, x))
	}
	return float32(x)
}

// Snapshot is empty: a shaper remembers nothing.
func (c *shaper) Snapshot() (component.State, error) { return component.State{}, nil }

// Restore has nothing to restore.
func (c *shaper) Restore(component.State) error { return nil }

// Stop has nothing to release.
func (c *shaper) Stop() error { return nil }

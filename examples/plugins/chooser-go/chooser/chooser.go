// Package chooser is a component that prefers blocks by their rewards: of each so many that come it passes on those with the
// highest mean, and sends the others on a signal of their own. Until then it leases them.
package chooser

import (
	"cmp"
	"errors"
	"slices"

	"github.com/rlhost/rlhost/sdk/component"
)

type chooser struct {
	component.Stateless
	config struct {
		Of   int `toml:"of"`
		Keep int `toml:"keep"`
	}
	host         component.Host
	best, others component.Signal
	held         []held
}

type held struct {
	message component.Message // names the lease
	lease   component.Lease
	mean    float64
}

// New returns an unconfigured chooser.
func New() component.Component { return &chooser{} }

func (c *chooser) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "trajectories", Payload: "trajectory", Doc: "the best blocks"}, {Name: "others", Payload: "trajectory", Doc: "the others"}},
		Slots:   []component.Port{{Name: "on_trajectories", Payload: "trajectory", Doc: "full blocks"}},
	}
}

func (c *chooser) Configure(decode func(into any) error) error {
	c.config.Of, c.config.Keep = 2, 1
	err := decode(&c.config)
	if of, keep := c.config.Of, c.config.Keep; err != nil || keep > 0 && keep < of && of <= 64 {
		return err
	}
	return &component.ConfigError{Key: "keep", Reason: "want 1 or more, and less than of, which is at most 64"}
}

func (c *chooser) Start(h component.Host) error {
	c.host, c.best, c.others = h, h.Signal("trajectories"), h.Signal("others")
	h.Slot("on_trajectories", c.onTrajectory)
	return nil
}

func (c *chooser) onTrajectory(m *component.Message) {
	reward, err := m.Block.Column("reward")
	valid, noValid := m.Block.Column("valid")
	lease, notLeased := m.Block.Lease()
	if err := errors.Join(err, noValid, notLeased); err != nil {
		c.host.Fail(err)
		return
	}
	c.held = append(c.held, held{*m, lease, mean(reward.Float32(), valid.Bytes)})
	if c.held[len(c.held)-1].message.Block = lease; len(c.held) == c.config.Of {
		c.choose()
	}
}

// choose sends what is held.
func (c *chooser) choose() {
	slices.SortStableFunc(c.held, func(a, b held) int { return cmp.Compare(b.mean, a.mean) })
	for i, x := range c.held {
		to := c.others
		if i < c.config.Keep {
			to = c.best
		}
		_, err := to.Emit(x.message)
		if err := errors.Join(err, x.lease.Release()); err != nil {
			c.host.Fail(err)
		}
	}
	c.held = c.held[:0]
}

func mean(rewards []float32, valid []byte) float64 {
	sum, rows := 0.0, 0.0
	for i, r := range rewards {
		sum, rows = sum+float64(r)*float64(valid[i]), rows+float64(valid[i])
	}
	return sum / max(rows, 1)
}

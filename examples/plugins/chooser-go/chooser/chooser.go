// Package chooser is a component that prefers blocks by their rewards: it collects a round of blocks under lease, passes the
// ones with the highest mean on, and sends the others on a second signal.
package chooser

import (
	"cmp"
	"slices"

	"github.com/rlhost/rlhost/sdk/component"
)

type chooser struct {
	Of   int `toml:"of"`
	Keep int `toml:"keep"`

	best, others  component.Signal
	reward, valid component.Column
	held          []held
}

type held struct {
	component.Kept
	mean float64
}

// New returns an unconfigured chooser.
func New() component.Component {
	c := &chooser{Of: 2, Keep: 1}
	return &component.Declared{
		Config: c,
		Check:  c.check,
		Signals: []component.Output{
			{Name: "trajectories", Payload: "trajectory", Doc: "the best blocks", Bind: &c.best},
			{Name: "others", Payload: "trajectory", Doc: "the others", Bind: &c.others},
		},
		Slots: []component.Input{{Name: "on_trajectories", Payload: "trajectory", Doc: "full blocks", Handle: c.onTrajectory,
			Columns: []component.Want{{Name: "reward", Into: &c.reward}, {Name: "valid", Into: &c.valid}}}},
	}
}

func (c *chooser) check() error {
	return component.Require(c.Keep > 0 && c.Keep < c.Of && c.Of <= 64, "keep", "want 1 or more, and less than of, which is at most 64")
}

func (c *chooser) onTrajectory(m *component.Message) error {
	kept, err := component.Keep(m)
	if c.held = append(c.held, held{kept, mean(c.reward.Float32(), c.valid.Bytes)}); err != nil || len(c.held) < c.Of {
		return err
	}
	slices.SortStableFunc(c.held, func(a, b held) int { return cmp.Compare(b.mean, a.mean) })
	for i, x := range c.held {
		to := c.others
		if i < c.Keep {
			to = c.best
		}
		if err := x.Send(to); err != nil {
			return err
		}
	}
	c.held = c.held[:0]
	return nil
}

func mean(rewards []float32, valid []byte) float64 {
	sum, rows := 0.0, 0.0
	for i, r := range rewards {
		sum, rows = sum+float64(r)*float64(valid[i]), rows+float64(valid[i])
	}
	return sum / max(rows, 1)
}

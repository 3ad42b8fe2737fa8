// Package curriculum is a component that gives the episodes to come a number, which rises by a step whenever so many episodes have had
// a mean return of goal or more.
package curriculum

import "github.com/rlhost/rlhost/sdk/component"

type curriculum struct {
	First  float64 `toml:"first"`
	Last   float64 `toml:"last"`
	Step   float64 `toml:"step"`
	Goal   float64 `toml:"goal"`
	Window int     `toml:"window"`

	params component.Signal
	param  component.Column
	level  component.Gauge
	seen   struct {
		Level, Sum float64
		Episodes   uint64 // since the level was last looked at
	}
}

// New returns an unconfigured curriculum.
func New() component.Component {
	c := &curriculum{First: 1, Last: 10, Step: 1, Goal: 0.9, Window: 100}
	return &component.Declared{
		Config:  c,
		Check:   c.check,
		State:   &c.seen,
		Signals: []component.Output{{Name: "params", Payload: "reset_params", Doc: "they have been written", Bind: &c.params}},
		Slots: []component.Input{
			{Name: "on_episodes", Payload: "episode", Doc: "episodes that have ended", Handle: c.onEpisode},
			{Name: "on_resets", Payload: "reset_request", Doc: "episodes to come want reset parameters", Handle: c.onResets,
				Columns: []component.Want{{Name: "reset_param", Into: &c.param, Write: true}}},
		},
		OnStart: func(h component.Host) { c.level = h.Gauge("curriculum/level") },
	}
}

func (c *curriculum) check() error {
	c.seen.Level = c.First
	ok := c.Window > 0 && c.First <= c.Last && c.Step > 0
	return component.Require(ok, "window", "and step want more than 0, and last as much as first or more")
}

func (c *curriculum) onEpisode(m *component.Message) error {
	c.seen.Sum += float64(component.EpisodeOf(m).Return)
	if c.seen.Episodes++; c.seen.Episodes < uint64(c.Window) {
		return nil
	}
	if c.seen.Sum/float64(c.Window) >= c.Goal {
		c.seen.Level = min(c.seen.Level+c.Step, c.Last)
	}
	c.seen.Sum, c.seen.Episodes = 0, 0
	return nil
}

func (c *curriculum) onResets(m *component.Message) error {
	c.level.Set(c.seen.Level)
	for env := range c.param.Envs {
		c.param.Row(0, env).Float32()[0] = float32(c.seen.Level)
	}
	return component.Pass(c.params, m)
}

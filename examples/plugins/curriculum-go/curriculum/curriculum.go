// Package curriculum is a component that gives the episodes to come a number, which rises by a step whenever so many episodes have had
// a mean return of goal or more.
package curriculum

import (
	"encoding/binary"

	"github.com/rlhost/rlhost/sdk/component"
)

type curriculum struct {
	component.Stateless // for all but Snapshot and Restore
	config              struct {
		First  float64 `toml:"first"`
		Last   float64 `toml:"last"`
		Step   float64 `toml:"step"`
		Goal   float64 `toml:"goal"`
		Window int     `toml:"window"`
	}
	host   component.Host
	params component.Signal
	level  component.Gauge
	seen   struct {
		Level, Sum float64
		Episodes   uint64 // since the level was last looked at
	}
}

// New returns an unconfigured curriculum.
func New() component.Component { return &curriculum{} }

func (c *curriculum) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "params", Payload: "reset_params", Doc: "they have been written"}},
		Slots: []component.Port{
			{Name: "on_episodes", Payload: "episode", Doc: "episodes that have ended"},
			{Name: "on_resets", Payload: "reset_request", Doc: "episodes to come want reset parameters"},
		},
	}
}

func (c *curriculum) Configure(decode func(into any) error) error {
	x := &c.config
	x.First, x.Last, x.Step, x.Goal, x.Window = 1, 10, 1, 0.9, 100
	err := decode(x)
	c.seen.Level = x.First
	if err != nil || x.Window > 0 && x.First <= x.Last && x.Step > 0 {
		return err
	}
	return &component.ConfigError{Key: "window", Reason: "and step want more than 0, and last as much as first or more"}
}

func (c *curriculum) Start(h component.Host) error {
	c.host, c.params, c.level = h, h.Signal("params"), h.Gauge("curriculum/level")
	h.Slot("on_episodes", c.onEpisode)
	h.Slot("on_resets", c.onResets)
	return nil
}

func (c *curriculum) onEpisode(m *component.Message) {
	c.seen.Sum += float64(component.EpisodeOf(m).Return)
	if c.seen.Episodes++; c.seen.Episodes < uint64(c.config.Window) {
		return
	}
	if c.seen.Sum/float64(c.config.Window) >= c.config.Goal {
		c.seen.Level = min(c.seen.Level+c.config.Step, c.config.Last)
	}
	c.seen.Sum, c.seen.Episodes = 0, 0
}

func (c *curriculum) onResets(m *component.Message) {
	c.level.Set(c.seen.Level)
	param, err := m.Block.Writable("reset_param")
	if err == nil {
		for env := range param.Envs {
			param.Float32()[env*param.StrideEnv] = float32(c.seen.Level)
		}
		_, err = c.params.Emit(*m)
	}
	if err != nil {
		c.host.Fail(err)
	}
}

func (c *curriculum) Snapshot() ([]byte, error) {
	return binary.Append(nil, binary.LittleEndian, c.seen)
}

func (c *curriculum) Restore(b []byte) error {
	_, err := binary.Decode(b, binary.LittleEndian, &c.seen)
	return err
}

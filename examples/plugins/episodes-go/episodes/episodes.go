// Package episodes is a component that logs episodes and makes metrics of them.
package episodes

import (
	"encoding/binary"

	"github.com/rlhost/rlhost/sdk/component"
)

type logger struct {
	component.Stateless // for all but Snapshot and Restore
	config              struct {
		Every uint32 `toml:"every"`
	}
	host          component.Host
	count         component.Counter
	length, total component.Histogram
	most          component.Gauge
	seen          struct{ Episodes, Longest uint64 }
}

// New returns an unconfigured logger.
func New() component.Component { return &logger{} }

func (c *logger) Manifest() component.Manifest {
	return component.Manifest{Slots: []component.Port{{Name: "on_episodes", Payload: "episode", Doc: "episodes that have ended"}}}
}

func (c *logger) Configure(decode func(into any) error) error {
	c.config.Every = 1
	if err := decode(&c.config); err != nil || c.config.Every > 0 {
		return err
	}
	return &component.ConfigError{Key: "every", Reason: "want 1 or more"}
}

func (c *logger) Start(h component.Host) error {
	c.host, c.count, c.most = h, h.Counter("episodes/count"), h.Gauge("episodes/longest")
	c.length, c.total = h.Histogram("episodes/length"), h.Histogram("episodes/return")
	h.Slot("on_episodes", c.onEpisode)
	return nil
}

func (c *logger) onEpisode(m *component.Message) {
	e := component.EpisodeOf(m)
	c.count.Add(1)
	c.length.Observe(float64(e.Length))
	c.total.Observe(float64(e.Return))
	c.seen.Longest = max(c.seen.Longest, uint64(e.Length))
	c.most.Set(float64(c.seen.Longest))
	if c.seen.Episodes++; (c.seen.Episodes-1)%uint64(c.config.Every) == 0 {
		c.host.Log().Info("episode", "env", e.Env, "env_steps", e.Length, "terminated", e.Terminated)
	}
}

func (c *logger) Snapshot() ([]byte, error) {
	return binary.Append(nil, binary.LittleEndian, c.seen)
}
func (c *logger) Restore(b []byte) error {
	_, err := binary.Decode(b, binary.LittleEndian, &c.seen)
	return err
}

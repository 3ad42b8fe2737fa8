// Package episodes is a component that logs episodes and makes metrics of them.
package episodes

import "github.com/rlhost/rlhost/sdk/component"

type logger struct {
	Every uint32 `toml:"every"`

	host          component.Host
	count         component.Counter
	length, total component.Histogram
	most          component.Gauge
	seen          struct{ Episodes, Longest uint64 }
}

// New returns an unconfigured logger.
func New() component.Component {
	c := &logger{Every: 1}
	return &component.Declared{
		Config:   c,
		Check:    func() error { return component.Require(c.Every > 0, "every", "want 1 or more") },
		State:    &c.seen,
		Slots:    []component.Input{{Name: "on_episodes", Payload: "episode", Doc: "episodes that have ended", Handle: c.onEpisode}},
		Requests: []component.Question{component.Asked("longest", "env steps of the longest episode, since a reset", c.longest)},
		OnStart:  c.start,
	}
}

func (c *logger) start(h component.Host) {
	c.host, c.count, c.most = h, h.Counter("episodes/count"), h.Gauge("episodes/longest")
	c.length, c.total = h.Histogram("episodes/length"), h.Histogram("episodes/return")
}

func (c *logger) onEpisode(m *component.Message) error {
	e := component.EpisodeOf(m)
	c.count.Add(1)
	c.length.Observe(float64(e.Length))
	c.total.Observe(float64(e.Return))
	c.seen.Longest = max(c.seen.Longest, uint64(e.Length))
	c.most.Set(float64(c.seen.Longest))
	if c.seen.Episodes++; (c.seen.Episodes-1)%uint64(c.Every) == 0 {
		c.host.Log().Info("episode", "env", e.Env, "env_steps", e.Length, "terminated", e.Terminated)
	}
	return nil
}

type longestQuestion struct {
	Reset bool `json:"reset,omitempty"`
}

func (c *logger) longest(q longestQuestion) (uint64, error) {
	longest := c.seen.Longest
	if q.Reset {
		c.seen.Longest = 0
	}
	return longest, nil
}

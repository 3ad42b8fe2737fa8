package channel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	core "github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// config is the component's table.
type config struct {
	Name    string `toml:"name" doc:"Name of the channel." default:"the component's"`
	Takes   string `toml:"takes" doc:"What the slot put takes." range:"episode, trajectory"`
	Key     string `toml:"key" doc:"Field whose value is an item's key; empty = default." range:"env, agent, length, terminated; split"`
	Weight  string `toml:"weight" doc:"Field whose value is an item's weight; empty = 1." range:"length, env, agent; rows"`
	Maxsize int    `toml:"maxsize" doc:"Most items of a key; 0 = any number." range:"0 or more"`
	Memory  int64  `toml:"memory,bytes" doc:"Most memory of items that wait."`
	Clients int    `toml:"clients" doc:"Most clients at a time." range:"1 or more"`
}

// fields are the ones that keys and weights come from, by payload. A weight is not negative, so a return is none.
var fields = map[string]struct{ keys, weights []string }{
	component.PayloadEpisode:    {[]string{"env", "agent", "length", "terminated"}, []string{"length", "env", "agent"}},
	component.PayloadTrajectory: {[]string{"split"}, []string{"rows"}},
}

const defaultKey = "default"

// Component serves a channel during a run.
type Component struct {
	config  config
	h       *component.Host
	server  *remote.Server
	dropped *stat.Counter
}

var _ component.Component = (*Component)(nil)

// New returns a component that has not been configured.
func New() component.Component {
	return &Component{config: config{Takes: component.PayloadEpisode}}
}

// Manifest lists the slot.
func (c *Component) Manifest() component.Manifest {
	return component.Manifest{
		Slots: []component.Port{{Name: "put", Payload: c.config.Takes, Doc: "what becomes an item"}},
		Fixed: "its clients are connected to the channel that it serves",
	}
}

// Configure decodes and checks the table.
func (c *Component) Configure(decode func(into any) error) error {
	c.config = config{Takes: component.PayloadEpisode, Memory: 1 << 30, Clients: 1024}
	if err := decode(&c.config); err != nil {
		return err
	}
	return c.config.check()
}

func (c *config) check() error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)})
	}
	of, known := fields[c.Takes]
	if !known {
		wrong("takes", "is %q, want episode or trajectory", c.Takes)
	}
	if known && c.Key != "" && !slices.Contains(of.keys, c.Key) {
		wrong("key", "is %q, want a field of a payload %s: %s", c.Key, c.Takes, strings.Join(of.keys, ", "))
	}
	if known && c.Weight != "" && !slices.Contains(of.weights, c.Weight) {
		wrong("weight", "is %q, want a field of a payload %s that is never negative: %s", c.Weight, c.Takes, strings.Join(of.weights, ", "))
	}
	if _, err := remote.SocketPath(cmp.Or(c.Name, defaultKey)); err != nil {
		wrong("name", "is %q, want up to 64 letters, digits and . _ -", c.Name)
	}
	if c.Maxsize < 0 {
		wrong("maxsize", "is %d, want 0 or more", c.Maxsize)
	}
	if c.Memory < 1 {
		wrong("memory", "is %d bytes, want more than 0", c.Memory)
	}
	if c.Clients < 1 {
		wrong("clients", "is %d, want 1 or more", c.Clients)
	}
	return errors.Join(errs...)
}

// Start serves the channel.
func (c *Component) Start(h *component.Host) error {
	c.h = h
	c.dropped = h.Stats.Counter("channel/dropped_items")
	h.Slot("put", c.put)
	server, err := remote.Serve(remote.Options{
		Name: cmp.Or(c.config.Name, h.Name), Clients: c.config.Clients, Log: h.Log,
		Limits: core.Limits{Items: c.config.Maxsize, Bytes: c.config.Memory},
	})
	if errors.Is(err, ipc.ErrInUse) {
		return fmt.Errorf("%w: give this channel a `name` of its own", err)
	}
	if err != nil {
		return err
	}
	c.server = server
	h.Log.Info("a channel is served", "name", cmp.Or(c.config.Name, h.Name))
	return nil
}

// put makes an item of a message. Slots do not wait: one for which there is no room is dropped, and counted.
func (c *Component) put(m *hostabi.Message) {
	var key string
	var item core.Item
	var err error
	if c.config.Takes == component.PayloadTrajectory {
		key, item, err = c.trajectory(m)
	} else {
		key, item = c.episode(m)
	}
	if err != nil {
		c.h.Fail(fmt.Errorf("%s %v: %w", c.config.Takes, m.Handle, err))
		return
	}
	err = c.server.Channel().TryPut(context.Background(), key, item)
	switch {
	case errors.Is(err, core.ErrFull), errors.Is(err, core.ErrClosed), errors.Is(err, core.ErrTooLarge):
		c.dropped.Add(1)
	case err != nil:
		c.h.Fail(err)
	}
}

// episode makes an item of an episode.
func (c *Component) episode(m *hostabi.Message) (string, core.Item) {
	e := trajectory.EpisodeOf(m)
	values := []field{
		{"env", uint64(e.Env)}, {"agent", uint64(e.Agent)}, {"return", float64(e.Return)}, {"length", uint64(e.Length)},
		{"terminated", e.Terminated}, {"policy_version", m.PolicyVersion},
	}
	return c.keyOf(values), core.Item{Weight: c.weightOf(values), Data: appendDict(nil, values)}
}

// trajectory makes an item of a block.
func (c *Component) trajectory(m *hostabi.Message) (string, core.Item, error) {
	t, lease, err := trajectory.Lease(c.h.Arenas, m.Handle)
	if err != nil {
		return "", core.Item{}, err
	}
	data := encodeBlock(t, m.PolicyVersion)
	values := []field{{"split", uint64(m.Split)}, {"rows", uint64(t.Meta().ValidRows)}}
	return c.keyOf(values), core.Item{Weight: c.weightOf(values), Data: data}, lease.Release()
}

// keyOf returns the key of an item.
func (c *Component) keyOf(values []field) string {
	if i := slices.IndexFunc(values, func(f field) bool { return f.name == c.config.Key }); i >= 0 {
		return fmt.Sprint(values[i].value)
	}
	return defaultKey
}

// weightOf returns the weight of an item.
func (c *Component) weightOf(values []field) float64 {
	if i := slices.IndexFunc(values, func(f field) bool { return f.name == c.config.Weight }); i >= 0 {
		if n, ok := values[i].value.(uint64); ok {
			return float64(n)
		}
	}
	return 1
}

// Snapshot implements component.Component: items belong to their clients, and the channel of a resumed run begins empty.
func (c *Component) Snapshot() (component.State, error) { return component.State{}, nil }

// Restore implements component.Component.
func (c *Component) Restore(component.State) error { return nil }

// Stop implements component.Component.
func (c *Component) Stop() error {
	if c.server == nil {
		return nil
	}
	err := c.server.Close()
	c.server = nil
	return err
}

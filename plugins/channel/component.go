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
	"github.com/rlhost/rlhost/plugins/items"
)

// config is the component's table.
type config struct {
	Name    string   `toml:"name" doc:"Name of the channel." default:"the component's"`
	Takes   string   `toml:"takes" doc:"What the slot put takes; none with gives." range:"episode, trajectory" default:"episode"`
	Gives   string   `toml:"gives" doc:"What the signal get makes of items that programs put: episode, or a payload of your own; empty = there is no such signal." range:"a payload without a block"`
	Keys    []string `toml:"keys" doc:"Keys whose items the signal get takes; empty = default."`
	Key     string   `toml:"key" doc:"Field whose value is an item's key; empty = default, or no field with gives." range:"env, agent, length, terminated; split"`
	Weight  string   `toml:"weight" doc:"Field whose value is an item's weight; empty = 1, or no field with gives." range:"length, env, agent; rows; return with gives"`
	Maxsize int      `toml:"maxsize" doc:"Most items of a key; 0 = any number." range:"0 or more"`
	Memory  int64    `toml:"memory,bytes" doc:"Most memory of items that wait."`
	Clients int      `toml:"clients" doc:"Most clients at a time." range:"1 or more"`
}

// fields are the ones that keys and weights come from, by payload. A weight is not negative, so a return is none.
var fields = map[string]struct{ keys, weights []string }{
	component.PayloadEpisode:    {[]string{"env", "agent", "length", "terminated"}, []string{"length", "env", "agent"}},
	component.PayloadTrajectory: {[]string{"split"}, []string{"rows"}},
}

// given are the fields of an episode that an item's key and weight become.
var given = struct{ keys, weights []string }{[]string{"env", "agent", "length"}, []string{"length", "return", "env", "agent"}}

const defaultKey = "default"

// Component serves a channel during a run.
type Component struct {
	config  config
	h       *component.Host
	server  *remote.Server
	dropped *stat.Counter // that the slot put had no room for
	source  *source       // of the signal get, where there is one
}

var _ component.Component = (*Component)(nil)

// New returns a component that has not been configured.
func New() component.Component {
	return &Component{}
}

// Manifest lists the slot, or the signal where the table says what it gives.
func (c *Component) Manifest() component.Manifest {
	m := component.Manifest{Fixed: "its clients are connected to the channel that it serves"}
	if c.config.Gives != "" {
		m.Signals = []component.Port{{Name: "get", Payload: c.config.Gives, Doc: "an item that a program has put"}}
		return m
	}
	m.Slots = []component.Port{{Name: "put", Payload: cmp.Or(c.config.Takes, component.PayloadEpisode), Doc: "what becomes an item"}}
	return m
}

// Configure decodes and checks the table.
func (c *Component) Configure(decode func(into any) error) error {
	c.config = config{Memory: 1 << 30, Clients: 1024}
	if err := decode(&c.config); err != nil {
		return err
	}
	if c.config.Gives == "" {
		c.config.Takes = cmp.Or(c.config.Takes, component.PayloadEpisode)
	}
	return c.config.check()
}

func (c *config) check() error {
	var errs []error
	wrong := func(key, format string, args ...any) {
		errs = append(errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf(format, args...)})
	}
	of, known := fields[c.Takes]
	if c.Gives != "" {
		of, known = given, true
		c.checkGives(wrong)
	} else if len(c.Keys) > 0 {
		wrong("keys", "are of the signal get, which there is with gives alone")
	}
	if !known {
		wrong("takes", "is %q, want episode or trajectory", c.Takes)
	}
	if known && c.Key != "" && !slices.Contains(of.keys, c.Key) {
		wrong("key", "is %q, want a field of a payload %s: %s", c.Key, c.payload(), strings.Join(of.keys, ", "))
	}
	if known && c.Weight != "" && !slices.Contains(of.weights, c.Weight) {
		wrong("weight", "is %q, want one of these fields of a payload %s: %s", c.Weight, c.payload(), strings.Join(of.weights, ", "))
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

// payload returns what the component's port is of.
func (c *config) payload() string { return cmp.Or(c.Gives, c.Takes) }

// checkGives tells what is wrong with a table that has gives.
func (c *config) checkGives(wrong func(key, format string, args ...any)) {
	if c.Takes != "" {
		wrong("takes", "is %q next to gives: a channel takes or gives, so use two", c.Takes)
	}
	if c.Gives == component.PayloadEpisode {
		return
	}
	if slices.Contains(component.Payloads(), c.Gives) {
		wrong("gives", "is %q, which is rlhost's own and about blocks: want episode or a name of your own", c.Gives)
	}
	if c.Key != "" {
		wrong("key", "is %q, want none: messages of payload %s have the number of the key in t", c.Key, c.Gives)
	}
	if c.Weight != "" {
		wrong("weight", "is %q, want none: messages of payload %s have the weight at inline 64", c.Weight, c.Gives)
	}
}

// Start serves the channel.
func (c *Component) Start(h *component.Host) error {
	c.h = h
	c.dropped = h.Stats.Counter("channel/dropped_items")
	if c.config.Gives == "" {
		h.Slot("put", c.put)
	}
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
	if c.config.Gives != "" {
		c.source = newSource(c.config, h, server)
		c.source.start()
	}
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
	values := items.OfEpisode(m)
	return c.keyOf(values), core.Item{Weight: c.weightOf(values), Data: values.AppendPlain(nil)}
}

// trajectory makes an item of a block.
func (c *Component) trajectory(m *hostabi.Message) (string, core.Item, error) {
	t, lease, err := trajectory.Lease(c.h.Arenas, m.Handle)
	if err != nil {
		return "", core.Item{}, err
	}
	data, values := items.Block(t, m.PolicyVersion), items.OfBlock(t, m)
	return c.keyOf(values), core.Item{Weight: c.weightOf(values), Data: data}, lease.Release()
}

// keyOf returns the key of an item.
func (c *Component) keyOf(values items.Values) string {
	if key, ok := values.Text(c.config.Key); ok {
		return key
	}
	return defaultKey
}

// weightOf returns the weight of an item.
func (c *Component) weightOf(values items.Values) float64 {
	if weight, ok := values.Number(c.config.Weight); ok {
		return weight
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
	if c.source != nil {
		c.source.stop()
	}
	err := c.server.Close()
	c.server = nil
	return err
}
